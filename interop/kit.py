"""What all parts need: Toolbelt's address, and an operator's switches.

Of the standard library alone, because no two parts have the same packages. A part's tests say ``import kit``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ADDRESS = os.environ["TOOLBELT_ADDRESS"]
AGENT, TOKEN = os.environ["TOOLBELT_AGENT"], os.environ["TOOLBELT_TOKEN"]
OTHER_AGENT, OTHER_TOKEN = os.environ["TOOLBELT_OTHER_AGENT"], os.environ["TOOLBELT_OTHER_TOKEN"]
# Longer than anything here takes: a wait that reaches it is a defect.
SECONDS_TO_RECORD = 20
OPERATOR_TOKEN = os.environ["TOOLBELT_OPERATOR_TOKEN"]


def session() -> str:
    """Return a new name for a conversation."""
    return f"interop-{uuid.uuid4().hex[:12]}"


def switch(toolkit: str, on: bool | None, agent: str = AGENT) -> None:
    """Flip an agent's switch of a toolkit, as an operator does; None clears it."""
    _flip(f"switches/{urllib.parse.quote(toolkit)}", on, agent)


def override(tool: str, on: bool | None, agent: str = AGENT) -> None:
    """Override a tool for an agent, as an operator does; None clears it."""
    _flip(f"overrides/{urllib.parse.quote(tool)}", on, agent)


@contextlib.contextmanager
def switched(toolkit: str, on: bool, agent: str = AGENT) -> Iterator[None]:
    """Flip a switch, and leave it as it was."""
    before = operator("GET", f"agents/{agent}/tools-config").get(toolkit)
    switch(toolkit, on, agent)
    try:
        yield
    finally:
        switch(toolkit, before, agent)


def approve(plugin: str) -> None:
    """Approve all tools of a plugin that await review, as an operator does."""
    changes = operator("GET", f"plugins/{plugin}/review")["changes"]
    if changes:
        tools = {change["tool"]: change["shown"] for change in changes}
        operator("POST", f"plugins/{plugin}/approve", {"tools": tools, "confirm": True})


def calls(**filters: str) -> list[dict[str, Any]]:
    """Return the recorded calls, the newest first, as an operator sees them."""
    found: list[dict[str, Any]] = operator("GET", f"calls?{urllib.parse.urlencode(filters)}")["items"]
    return found


def newest(**filters: str) -> int:
    """Return the id of the newest recorded call, or 0 if there is none."""
    return next((call["id"] for call in calls(**filters)), 0)


def recorded(count: int, *, after: int = 0, **filters: str) -> list[dict[str, Any]]:
    """Wait until so many calls are recorded, which happens behind their answers; return them, the newest first.

    ``after`` is the id of a call: only later calls are returned. The API's page has the newest 50.
    """
    end = time.monotonic() + SECONDS_TO_RECORD
    while True:
        found = [call for call in calls(**filters) if call["id"] > after]
        if len(found) >= count or time.monotonic() > end:
            return found
        time.sleep(0.05)


def operator(method: str, path: str, body: Any = None) -> Any:
    """Ask the HTTP API as the operator; raises urllib.error.HTTPError for a problem."""
    request = urllib.request.Request(
        f"{ADDRESS}/api/v1/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {OPERATOR_TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def manage(*arguments: str) -> str:
    """Run a command of Toolbelt's on the server's machine; return the last line that it printed."""
    how = json.loads(Path(os.environ["TOOLBELT_MANAGE"]).read_text(encoding="utf-8"))
    done = subprocess.run(
        [*how["command"], *arguments], env=how["environment"], capture_output=True, text=True
    )
    if done.returncode:
        raise AssertionError(f"manage.py {' '.join(arguments[:2])} failed: {done.stdout}{done.stderr}")
    return done.stdout.strip().rpartition("\n")[2]


def _flip(where: str, on: bool | None, agent: str) -> None:
    address = f"agents/{urllib.parse.quote(agent)}/{where}"
    if on is None:
        operator("DELETE", address)
    else:
        operator("PUT", address, {"on": on, "confirm": True})
