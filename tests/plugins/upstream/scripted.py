"""A small MCP server over stdio whose behavior is set by files, run as a program.

``python scripted.py DIRECTORY`` reads ``tools.json`` there at each listing, so that a test can change what the running
server lists; ``PROCESS`` in it is replaced by the id of the process. Some tools have special behavior by their names;
any other returns its arguments. The program needs only Python, so that it starts quickly.

``others.json``, if it exists, contains the answers to other methods, and adds prompts, resources and completions to the
capabilities. An answer is a result, ``{"error": {…}}``, or null for none. Their requests are written to ``asked``, one
per line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

PAGE = 1_000
OTHERS = {
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
}
# Messages that arrived while the user was asked.
POSTPONED: list[dict[str, Any]] = []

# The text that ``put`` stored.
_stored = {"text": "nothing"}


def main(directory: Path) -> None:
    with (directory / "starts").open("a") as starts:
        starts.write("x")
    (directory / f"process-{os.getpid()}").touch()
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
        while POSTPONED:
            answer(directory, POSTPONED.pop(0))


def answer(directory: Path, message: dict[str, Any]) -> None:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        (directory / "capabilities.json").write_text(json.dumps(params["capabilities"]))
        if (directory / "delay").exists():
            time.sleep(float((directory / "delay").read_text()))
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}, **offered(directory)},
            "serverInfo": {"name": "scripted", "version": "1"},
        }
        if (directory / "instructions").exists():
            result["instructions"] = (directory / "instructions").read_text()
        send({"id": message["id"], "result": result})
    elif method == "tools/list":
        tools = json.loads((directory / "tools.json").read_text().replace("PROCESS", str(os.getpid())))
        start = int(params.get("cursor") or 0)
        page: dict[str, Any] = {"tools": tools[start : start + PAGE] if isinstance(tools, list) else tools}
        if isinstance(tools, list) and start + PAGE < len(tools):
            page["nextCursor"] = str(start + PAGE)
        send({"id": message["id"], "result": page})
    elif method == "tools/call":
        call(directory, message["id"], params)
    elif method in others(directory):
        with (directory / "asked").open("a") as requests:
            requests.write(json.dumps([method, params]) + "\n")
        response = others(directory)[method]
        if response is not None:
            send({"id": message["id"], **(response if "error" in response else {"result": response})})
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


def offered(directory: Path) -> dict[str, Any]:
    return OTHERS | others(directory).get("capabilities", {}) if others(directory) else {}


def others(directory: Path) -> dict[str, Any]:
    if not (directory / "others.json").exists():
        return {}
    answers: dict[str, Any] = json.loads((directory / "others.json").read_text())
    return answers


def call(directory: Path, number: object, params: dict[str, Any]) -> None:
    arguments = params.get("arguments") or {}
    with (directory / "calls").open("a") as calls:
        calls.write("x")
    match params["name"]:
        case "hang":
            sys.stdout.write(arguments.get("write", ""))
            sys.stdout.flush()
            (directory / "hanging").touch()
            return
        case "die":
            sys.stderr.write("killed by a test\n")
            sys.stderr.flush()
            os._exit(9)
        case "fail":
            text(number, "There is no such file.", isError=True)
        case "refuse":
            code = arguments.get("code", -32602)
            send({"id": number, "error": {"code": code, "message": "I do not like this."}})
        case "environment":
            text(number, json.dumps({name: os.environ.get(name) for name in arguments["names"]}))
        case "progress":
            token = params["_meta"]["progressToken"]
            for step in (1, 2):
                message = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
                send({"method": "notifications/progress", "params": message})
            # Notifications are handled concurrently: without a pause, the answer would overtake them.
            time.sleep(0.05)
            text(number, "done")
        case "work":
            # Works for the given time, and reports progress.
            end, steps = time.monotonic() + arguments["seconds"], 0
            while time.monotonic() < end:
                steps += 1
                message = {"progressToken": params["_meta"]["progressToken"], "progress": steps}
                send({"method": "notifications/progress", "params": message})
                time.sleep(0.1)
            text(number, "worked")
        case "notify":
            for _ in range(arguments.get("times", 1)):
                send({"method": arguments["method"], "params": arguments.get("params", {})})
            text(number, "notified")
        case "put":
            _stored["text"] = arguments["text"]
            text(number, "kept")
        case "get":
            text(number, _stored["text"])
        case "who":
            text(number, f"process {os.getpid()}")
        case "hold":
            (directory / f"begun-{os.getpid()}").touch()
            while not (directory / "go").exists():
                time.sleep(0.02)
            text(number, "held")
        case "ask":
            text(number, json.dumps(ask_user(directory, arguments), sort_keys=True))
        case "log":
            for message in arguments["messages"]:
                send({"method": "notifications/message", "params": message})
            # As for "progress".
            time.sleep(0.05)
            text(number, "logged")
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


def ask_user(directory: Path, params: dict[str, Any]) -> Any:
    """Ask the user and return the result or error. Ask a second time if another call arrives meanwhile."""
    send({"id": "q1", "method": "elicitation/create", "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q1":
            return message.get("result") or message["error"]
        if message.get("id") == "q2":
            (directory / "second").write_text(json.dumps(message.get("result") or message["error"]))
        elif message.get("method") == "tools/call":
            POSTPONED.append(message)
            send({"id": "q2", "method": "elicitation/create", "params": params})
        elif message.get("method") == "notifications/cancelled":
            (directory / "cancelled").write_text(str(message["params"]["requestId"]))
    return None


def text(number: object, body: str, **more: Any) -> None:
    send({"id": number, "result": {"content": [{"type": "text", "text": body}], **more}})


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
