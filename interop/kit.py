"""What all Python parts share: Toolbelt's address, an operator's changes, and the recorded calls.

This module uses only the standard library, because no two parts have the same packages. A part's tests ``import kit``.
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
# Longer than anything here takes, so a wait that reaches it is a defect.
SECONDS_TO_RECORD = 20
OPERATOR_TOKEN = os.environ["TOOLBELT_OPERATOR_TOKEN"]


def session() -> str:
    """Return a new session key."""
    return f"interop-{uuid.uuid4().hex[:12]}"


def switch(toolkit: str, on: bool | None, agent: str = AGENT) -> None:
    """Set an agent's switch of a toolkit, as an operator does; None resets it."""
    _set(f"switches/{urllib.parse.quote(toolkit)}", on, agent)


def override(tool: str, on: bool | None, agent: str = AGENT) -> None:
    """Override a tool for an agent, as an operator does; None resets it."""
    _set(f"overrides/{urllib.parse.quote(tool)}", on, agent)


@contextlib.contextmanager
def switched(toolkit: str, on: bool, agent: str = AGENT) -> Iterator[None]:
    """Set a switch, and restore it afterwards."""
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
    """Return the recorded calls, newest first, as an operator sees them."""
    items: list[dict[str, Any]] = operator("GET", f"calls?{urllib.parse.urlencode(filters)}")["items"]
    return items


def newest(**filters: str) -> int:
    """Return the id of the newest recorded call, or 0 if there is none."""
    return next((call["id"] for call in calls(**filters)), 0)


def recorded(count: int, *, after: int = 0, **filters: str) -> list[dict[str, Any]]:
    """Wait until this many calls are recorded, which happens after the responses; return them, newest first.

    ``after`` is the id of a call: only later calls are returned. A page of the API has the newest 50.
    """
    end = time.monotonic() + SECONDS_TO_RECORD
    while True:
        matching = [call for call in calls(**filters) if call["id"] > after]
        if len(matching) >= count or time.monotonic() > end:
            return matching
        time.sleep(0.05)


def operator(method: str, path: str, body: Any = None) -> Any:
    """Send a request to the HTTP API as the operator. Raise urllib.error.HTTPError for a problem."""
    request = urllib.request.Request(
        f"{ADDRESS}/api/v1/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {OPERATOR_TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        text = response.read()
    return json.loads(text) if text else None


def manage(*arguments: str) -> str:
    """Run a command of manage.py on the server's database, and return the last line of its output."""
    manage_py = json.loads(Path(os.environ["TOOLBELT_MANAGE"]).read_text(encoding="utf-8"))
    completed = subprocess.run(
        [*manage_py["command"], *arguments], env=manage_py["environment"], capture_output=True, text=True
    )
    if completed.returncode:
        raise AssertionError(
            f"manage.py {' '.join(arguments[:2])} failed: {completed.stdout}{completed.stderr}"
        )
    return completed.stdout.strip().rpartition("\n")[2]


def _set(path: str, on: bool | None, agent: str) -> None:
    address = f"agents/{urllib.parse.quote(agent)}/{path}"
    if on is None:
        operator("DELETE", address)
    else:
        operator("PUT", address, {"on": on, "confirm": True})
