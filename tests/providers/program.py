"""A program that keeps a conversation with Claude in a file, and may be killed at any point of a turn.

``python -m tests.providers.program FILE TOOLBELT TOKEN PROVIDER TEXT POINT``: answers the user's TEXT, or goes on where
the file ends if there is none. It kills itself at the POINT, if it names one.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
from typing import Any

import anthropic

from toolbelt.adapters import plain
from toolbelt.adapters.connection import http

# The points between the two phases, in order.
POINTS = ("before asking", "before sending", "before keeping", "while storing", "after storing")
MODEL = "claude-opus-5-5"


def main(file: str, toolbelt: str, token: str, provider: str, text: str, point: str) -> None:
    """Take one turn of the conversation."""
    path = pathlib.Path(file)
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"messages": [], "state": None}
    messages: list[Any] = kept["messages"]

    def reached(here: str) -> None:
        if here == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def store() -> None:
        new = path.with_suffix(".new")
        new.write_text(json.dumps(kept))
        reached("while storing")
        new.replace(path)

    if text:
        messages.append({"role": "user", "content": text})
        path.write_text(json.dumps(kept))
    connection = http.Http(toolbelt, "ada", token)
    with anthropic.Anthropic(api_key="k", base_url=provider, max_retries=0) as client:
        talk = plain.Toolbelt(connection).conversation(
            "anthropic", model=MODEL, system="Be brief.", state=kept["state"]
        )
        run = talk.begin(text or None, session="s1")
        while True:
            # What the model called before the program was killed has no result yet.
            if messages[-1]["role"] == "assistant":
                calls = [block for block in messages[-1]["content"] if block["type"] == "tool_use"]
                if not calls:
                    return
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": call["id"],
                        "content": run.call(call["name"], call["input"]).text[:80],
                    }
                    for call in calls
                ]
                messages.append({"role": "user", "content": results})
            reached("before asking")
            step = run.ask(messages)
            reached("before sending")
            answer = client.messages.create(model=MODEL, max_tokens=9, **step.parameters)
            reached("before keeping")
            step.answered()
            content = [block.model_dump(exclude_none=True) for block in answer.content]
            messages.append({"role": "assistant", "content": content})
            kept["state"] = talk.state
            store()
            reached("after storing")


if __name__ == "__main__":
    main(*sys.argv[1:])
