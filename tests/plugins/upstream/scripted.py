"""A small MCP server over stdio that does what a file tells it, run as a program.

``python scripted.py DIRECTORY``: in it, ``tools.json`` is read anew at each listing, so that a test changes what the
server says behind everybody's back. Tools by these names do something of their own; any other one says its arguments.
It needs nothing but Python, so that it is there in no time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

PAGE = 1_000


def main(directory: Path) -> None:
    with (directory / "starts").open("a") as starts:
        starts.write("x")
    if (directory / "broken").exists():
        sys.stderr.write("\x1b[31mcannot find my database\x1b[0m\n")
        sys.exit(3)
    if (directory / "silent").exists():
        sys.stdin.read()
        return
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            (directory / "cancelled").write_text(str(message["params"]["requestId"]))
        if "id" in message and "method" in message:
            answer(directory, message)


def answer(directory: Path, message: dict[str, Any]) -> None:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        if (directory / "delay").exists():
            time.sleep(float((directory / "delay").read_text()))
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }
        send({"id": message["id"], "result": result})
    elif method == "tools/list":
        tools = json.loads((directory / "tools.json").read_text())
        start = int(params.get("cursor") or 0)
        page: dict[str, Any] = {"tools": tools[start : start + PAGE] if isinstance(tools, list) else tools}
        if isinstance(tools, list) and start + PAGE < len(tools):
            page["nextCursor"] = str(start + PAGE)
        send({"id": message["id"], "result": page})
    elif method == "tools/call":
        call(directory, message["id"], params)
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


def call(directory: Path, number: object, params: dict[str, Any]) -> None:
    arguments = params.get("arguments") or {}
    with (directory / "calls").open("a") as calls:
        calls.write("x")
    match params["name"]:
        case "hang":
            (directory / "hanging").touch()
            return
        case "die":
            sys.stderr.write("killed by a test\n")
            sys.stderr.flush()
            os._exit(9)
        case "fail":
            text(number, "There is no such file.", isError=True)
        case "refuse":
            send({"id": number, "error": {"code": -32602, "message": "I do not like this."}})
        case "environment":
            text(number, json.dumps({name: os.environ.get(name) for name in arguments["names"]}))
        case "progress":
            token = params["_meta"]["progressToken"]
            for step in (1, 2):
                said = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
                send({"method": "notifications/progress", "params": said})
            # Notifications are handled side by side; the answer would overtake them.
            time.sleep(0.05)
            text(number, "done")
        case "work":
            # Until the time is over, with a word now and then.
            end, steps = time.monotonic() + arguments["seconds"], 0
            while time.monotonic() < end:
                steps += 1
                said = {"progressToken": params["_meta"]["progressToken"], "progress": steps}
                send({"method": "notifications/progress", "params": said})
                time.sleep(0.1)
            text(number, "worked")
        case "announce":
            send({"method": "notifications/tools/list_changed"})
            text(number, "announced")
        case "picture":
            blocks = [
                {"type": "text", "text": "a dot"},
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
            ]
            send({"id": number, "result": {"content": blocks}})
        case "flood":
            while True:
                sys.stdout.write("x" * 65_536)
        case "chatter":
            while True:
                sys.stdout.write("Loading a page of documentation\n")
        case "result":
            send({"id": number, "result": json.loads((directory / "result.json").read_text())})
        case "structure":
            text(number, '{"n":1}', structuredContent={"n": 1})
        case _:
            text(number, json.dumps(arguments, sort_keys=True))


def text(number: object, said: str, **more: Any) -> None:
    send({"id": number, "result": {"content": [{"type": "text", "text": said}], **more}})


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
