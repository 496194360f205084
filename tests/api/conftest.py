"""Fixtures for the tests of the API: a small configuration, tokens, and a client that sends JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import models as logins
from django.test import Client

from tests import fast_fixtures
from toolbelt.api import limits
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

SETUP = writing.by("setup", via="command")
BELT: dict[str, Any] = {
    "plugins": [
        {"name": "kb", "namespace": "kb", "category": "search", "in_code": True},
        {"name": "base", "in_code": True},
    ],
    "tools": [
        {"key": "kb__find", "plugin": "kb", "description": "Find.", "annotations": {"readOnlyHint": True}},
        {"key": "kb__read", "plugin": "kb", "description": "Read.", "annotations": {"readOnlyHint": True}},
        {"key": "kb__drop", "plugin": "kb", "description": "Drop.", "annotations": {"destructiveHint": True}},
        {"key": "clock", "plugin": "base", "description": "Tell the time.", "default_on": True},
        {"key": "hidden", "plugin": "base", "description": "Nobody has it."},
    ],
    "toolkits": [
        {
            "key": "reading",
            "title": "Reading",
            "description": "Looks things up.",
            "members": ["kb__find", "kb__read"],
            "policy": "Look before you answer: {active_tools}.",
            "triggers": [{"name": "find", "any": ["find"], "focus": ["kb__find"], "tool_choice": "required"}],
        },
        {"key": "dropping", "members": ["kb__drop"], "policy": "Never drop twice."},
        {"key": "unknown_to_all", "members": ["hidden"]},
    ],
    "loadouts": [{"name": "night", "plugins": ["kb"], "disabled": ["kb__drop"]}],
    "agents": [
        {
            "key": "ada",
            "tools": ["clock"],
            "allowed_toolkits": ["reading"],
            "tools_config": {"dropping": False},
            "subagent_kinds": ["explore"],
            "session_loadouts": ["night"],
        },
        {"key": "bob", "tools_config": {"reading": True}},
    ],
}


class Asking:
    """A client that sends JSON, with a token if it has one."""

    def __init__(self, token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self._client = Client(headers=headers)

    def get(self, address: str, query: dict[str, Any] | None = None, **headers: str) -> Any:
        return self._client.get(f"/api/v1{address}", query, headers=headers or None)

    def post(self, address: str, body: Any, **headers: str) -> Any:
        return self.send("POST", address, body, **headers)

    def put(self, address: str, body: Any, **headers: str) -> Any:
        return self.send("PUT", address, body, **headers)

    def patch(self, address: str, body: Any, **headers: str) -> Any:
        return self.send("PATCH", address, body, **headers)

    def delete(self, address: str, body: Any = None, **headers: str) -> Any:
        return self.send("DELETE", address, body, **headers)

    def send(self, method: str, address: str, body: Any = None, **headers: str) -> Any:
        sent = {"data": body, "content_type": "application/json"} if body is not None else {}
        return self._client.generic(
            method,
            f"/api/v1{address}",
            **self._encoded(**sent),
            headers=headers or None,
        )

    def _encoded(self, data: Any = None, content_type: str = "application/octet-stream") -> dict[str, Any]:
        if data is None:
            return {}
        encoded = data if isinstance(data, bytes) else json.dumps(data).encode()
        return {"data": encoded, "content_type": content_type}


Asks = Callable[[str | None], Asking]


@pytest.fixture(autouse=True)
def reset_rate_limits() -> Iterator[None]:
    """Reset the request limits before and after each test."""
    limits.rates.forget()
    yield
    limits.rates.forget()


@pytest.fixture
def stored(db: None) -> None:
    fast_fixtures.stored("api", lambda: belts.import_(SETUP, BELT))


@pytest.fixture
def ada(stored: None) -> Asking:
    """Return a client with a token of the agent ada."""
    return Asking(tokens.issue(SETUP, agent="ada").text)


@pytest.fixture
def bob(stored: None) -> Asking:
    """Return a client with a token of the agent bob."""
    return Asking(tokens.issue(SETUP, agent="bob").text)


@pytest.fixture
def olga(stored: None) -> Asking:
    """Return a client with a read-write token of an operator with all permissions."""
    return Asking(of_operator("olga", superuser=True))


@pytest.fixture
def reader(stored: None) -> Asking:
    """Return a client with a read-only token of an operator with all permissions."""
    return Asking(of_operator("rita", superuser=True, scope="read"))


@pytest.fixture
def anonymous() -> Asking:
    """Return a client without a token."""
    return Asking(None)


def of_operator(
    name: str, *permissions: str, superuser: bool = False, scope: str = "write", **fields: Any
) -> str:
    """Create an operator with these permissions, and return a token of theirs."""
    user = logins.User.objects.create_user(name, is_superuser=superuser, **fields)
    user.user_permissions.set(logins.Permission.objects.filter(codename__in=permissions))
    return tokens.issue(SETUP, user=name, scope=scope).text
