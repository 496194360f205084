"""What do all parts need: where Toolbelt is, and an operator's hand on its switches?

Of the standard library alone, because no two parts have the same packages. A part's tests say ``import kit``.
"""

from __future__ import annotations

import contextlib
import json
import os
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

ADDRESS = os.environ["TOOLBELT_ADDRESS"]
AGENT, TOKEN = os.environ["TOOLBELT_AGENT"], os.environ["TOOLBELT_TOKEN"]
OTHER_AGENT, OTHER_TOKEN = os.environ["TOOLBELT_OTHER_AGENT"], os.environ["TOOLBELT_OTHER_TOKEN"]
OPERATOR_TOKEN = os.environ["TOOLBELT_OPERATOR_TOKEN"]


def session() -> str:
    """Name a conversation that nobody else has."""
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


def calls(**filters: str) -> list[dict[str, Any]]:
    """Give the recorded calls, the newest first, as an operator sees them."""
    found: list[dict[str, Any]] = operator("GET", f"calls?{urllib.parse.urlencode(filters)}")["items"]
    return found


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


def _flip(where: str, on: bool | None, agent: str) -> None:
    address = f"agents/{urllib.parse.quote(agent)}/{where}"
    if on is None:
        operator("DELETE", address)
    else:
        operator("PUT", address, {"on": on, "confirm": True})
