"""Fixtures for the tests of the admin: a small configuration, a logged-in operator, and forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client
from django.urls import reverse

from tests import fast_fixtures
from tests.admin import browsing
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.config import belts

OpenForm = Callable[[Any], browsing.Page]

BELT: dict[str, Any] = {
    "categories": ["crm"],
    "plugins": [
        {"name": "git", "namespace": "git", "category": "git"},
        {"name": "crm", "namespace": "crm", "category": "crm"},
    ],
    "tools": [
        {"key": "git__status", "plugin": "git", "annotations": {"readOnlyHint": True}},
        {"key": "git__commit", "plugin": "git", "annotations": {"destructiveHint": False}},
        {"key": "git__wipe", "plugin": "git", "annotations": {"destructiveHint": True}},
        {"key": "crm__find", "plugin": "crm", "annotations": {"readOnlyHint": True}},
        {"key": "crm__note", "plugin": "crm", "annotations": {"readOnlyHint": True}},
        {"key": "clock", "description": "Tells the time.", "annotations": {"readOnlyHint": True}},
    ],
    "toolkits": [
        {
            "key": "dev",
            "title": "Development",
            "members": ["git__status", {"tool": "git__commit", "options": {"sign": True}}],
            "policy": "Work with {active_tools}.\n\nCommit often.\n",
            "policy_when_off": "You cannot work on code.",
            "tool_notes": {"git__commit": "Say why."},
            "triggers": [{"name": "commit", "any": ["commit"], "focus": ["git__commit"]}],
        },
        {"key": "sales", "members": ["crm__find", "crm__note"], "policy": "Be kind."},
        {"key": "time", "members": ["clock"]},
    ],
    "loadouts": [{"name": "house", "parent": "minimal", "categories": ["crm"]}],
    "agents": [
        {
            "key": "ada",
            "title": "Ada",
            "tools": ["clock"],
            "tools_config": {"dev": True, "crm__find": True, "crm__note": False},
            "allowed_toolkits": ["sales"],
        },
        {"key": "bob", "tools_config": {"sales": False, "dev": False}},
        {"key": "cyd", "protected": True, "tools_config": {"dev": True}},
    ],
    "sub_apps": [{"key": "desk", "tool_names": ["crm__find"], "agents": ["bob"]}],
}


@pytest.fixture
def stored(db: None) -> None:
    """Store the configuration, as an import does."""
    setup = writing.by("setup", via="import")
    fast_fixtures.stored("admin", lambda: belts.import_(setup, BELT))


@pytest.fixture
def client(db: None) -> Client:
    """Return a browser in which an operator with all permissions is logged in."""
    return fast_fixtures.logged_in(auth.User.objects.create_superuser("olga"))


@pytest.fixture
def open_form(stored: None, client: Client) -> OpenForm:
    """Return a function that opens the form of a row, or of a model the form for a new row."""
    return lambda subject: browsing.open_(client, address(subject))


def address(subject: Any, view: str = "") -> str:
    """Return the address of a row's form, of a model's form for a new row, or of another view of either."""
    prefix = f"admin:toolbelt_{subject._meta.model_name}"
    if isinstance(subject, type):
        return reverse(f"{prefix}_{view or 'add'}")
    return reverse(f"{prefix}_{view or 'change'}", args=[subject.pk])


def agent(key: str) -> models.Agent:
    return models.Agent.objects.get(key=key)


def toolkit(key: str) -> models.Toolkit:
    return models.Toolkit.objects.get(key=key)


def tool(key: str) -> models.Tool:
    return models.Tool.objects.get(key=key)


def last_entries(number: int = 1) -> list[models.AuditEntry]:
    """Return the newest audit entries, in chronological order."""
    return list(models.AuditEntry.objects.all()[:number])[::-1]
