"""Fixtures for the dashboard's tests: a small configuration, and users with different permissions."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.test import Client

from tests import fast_fixtures
from toolbelt import models, testing
from toolbelt.web.kit import pieces


class UndeclaredName(Exception):
    """A template reads a name that its view does not declare. Templates ignore other errors."""


@pytest.fixture(autouse=True)
def views_declare_what_templates_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def declared(view: pieces.View, name: str) -> object:
        try:
            return getattr(view, name)
        except AttributeError as error:
            raise UndeclaredName(f"{type(view).__name__} has no {name}") from error

    monkeypatch.setattr(pieces.View, "__getitem__", declared)


READS = {"readOnlyHint": True}
WRITES = {"destructiveHint": False}
DESTROYS = {"destructiveHint": True}

BELT: dict[str, Any] = {
    "plugins": [
        {"name": "github", "namespace": "github", "title": "GitHub"},
        {"name": "acme.clock", "namespace": "clock", "title": "Clock"},
    ],
    "tools": [
        {
            "key": "github__issue_read",
            "plugin": "github",
            "description": "Reads an issue.",
            "annotations": READS,
        },
        {
            "key": "github__issue_write",
            "plugin": "github",
            "description": "Files an issue.",
            "annotations": WRITES,
        },
        {
            "key": "github__merge",
            "plugin": "github",
            "description": "Merges a pull request.",
            "annotations": DESTROYS,
        },
        {"key": "clock__now", "plugin": "acme.clock", "description": "Tells the time.", "annotations": READS},
        {"key": "shell", "description": "Runs a command.", "default_on": True},
        {"key": "papers", "description": "Finds papers.", "annotations": READS},
    ],
    "toolkits": [
        {
            "key": "issues",
            "title": "Issues and reviews",
            "description": "Reads and files issues.",
            "members": ["github__issue_read", "github__issue_write"],
            "policy": "Read before you write.",
            "policy_when_off": "You cannot see issues.",
            "triggers": [{"name": "file", "any": ["bug"], "focus": ["github__issue_write"]}],
        },
        {
            "key": "releases",
            "members": ["github__merge", "github__issue_read"],
            "policy": "Ask first: {active_tools}.",
        },
        {"key": "research", "title": "Research", "members": ["papers"]},
    ],
    "agents": [
        {
            "key": "ada",
            "role": "Keeps the project tidy",
            "tools_config": {"issues": True, "clock__now": True},
            "allowed_toolkits": ["research"],
        },
        {"key": "bob", "kind": "plan", "protected": True},
    ],
}


@pytest.fixture
def belt(db: None) -> None:
    """Store the small configuration as rows, without audit entries."""
    fast_fixtures.stored("web", lambda: testing.RowsWorld().load(BELT, lenient=True))


@pytest.fixture
def olive(db: None) -> auth.User:
    """Return an operator who may change agents."""
    user = get_user_model().objects.create_user("olive", password="correct horse")
    user.user_permissions.add(auth.Permission.objects.get(codename="change_agent"))
    return user


@pytest.fixture
def operator(olive: auth.User) -> Client:
    """Return the browser of a user who may change agents."""
    return fast_fixtures.logged_in(olive)


@pytest.fixture
def call_viewer(operator: Client, olive: auth.User, belt: None) -> Client:
    """Return the browser of a user who may view calls and change agents."""
    olive.user_permissions.add(auth.Permission.objects.get(codename="view_callrecord"))
    return operator


@pytest.fixture
def plugin_manager(db: None) -> Client:
    """Return the browser of a user who may add and change plugins and review their tools."""
    user = get_user_model().objects.create_user("kim")
    changes = [f"change_{kind}" for kind in ("plugin", "tool", "agent", "toolkit", "loadout", "subapp")]
    codenames = ["view_plugin", "add_plugin", *changes]
    user.user_permissions.set(auth.Permission.objects.filter(codename__in=codenames))
    return fast_fixtures.logged_in(user)


@pytest.fixture
def viewer(db: None) -> Client:
    """Return the browser of a user without permissions to change anything."""
    return fast_fixtures.logged_in(get_user_model().objects.create_user("rosa"))


@pytest.fixture
def administrator(db: None) -> Client:
    """Return the browser of a superuser."""
    return fast_fixtures.logged_in(get_user_model().objects.create_superuser("root"))


@pytest.fixture
def more_tools(belt: None) -> Any:
    """Return a function that adds a number of tools, with a toolkit for each dozen."""

    def add(count: int) -> None:
        existing = models.Tool.objects.count()
        tools = models.Tool.objects.bulk_create(
            models.Tool(key=f"extra_{existing + number}", description="One of many.", tokens=10)
            for number in range(count)
        )
        for first in range(0, count, 12):
            toolkit = models.Toolkit.objects.create(key=f"more_{existing + first}")
            models.Member.objects.bulk_create(
                models.Member(toolkit=toolkit, tool=tool, position=position)
                for position, tool in enumerate(tools[first : first + 12])
            )

    return add
