"""Fixtures for the tests of control: a small stored configuration."""

from typing import Any

import pytest
from django.contrib import auth

from tests import fast_fixtures
from tests.control import trying
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.people import roles

BELT: dict[str, Any] = {
    "plugins": [{"name": "git", "namespace": "git", "category": "git"}],
    "tools": [
        {
            "key": "git__status",
            "plugin": "git",
            "description": "Show status.",
            "annotations": {"readOnlyHint": True},
        },
        {
            "key": "git__log",
            "plugin": "git",
            "description": "Show the log.",
            "annotations": {"readOnlyHint": True},
        },
        {
            "key": "git__push",
            "plugin": "git",
            "description": "Push.",
            "annotations": {"destructiveHint": True},
        },
        {
            "key": "clock",
            "description": "Tell the time.",
            "default_on": True,
            "annotations": {"readOnlyHint": True},
        },
    ],
    "toolkits": [
        {
            "key": "reading",
            "members": ["git__status", "git__log"],
            "policy": "Look before you write: {active_tools}.",
            "policy_when_off": "You cannot look at the repository.",
        },
        {"key": "pushing", "members": ["git__push"]},
        {"key": "verbose", "members": [{"tool": "git__log", "options": {"depth": 9}}]},
    ],
    "agents": [{"key": "ada"}, {"key": "bob", "tools_config": {"reading": True}}],
}


@pytest.fixture
def operator() -> writing.Write:
    return writing.by("olive", via="screen")


@pytest.fixture
def stored(db: None, operator: writing.Write) -> None:
    fast_fixtures.stored("control", lambda: belts.import_(operator, BELT))


@pytest.fixture
def olive(db: None) -> Any:
    auth.get_user_model().objects.create_user("olive")
    roles.assign(trying.WRITE, "olive", "operator")
    return auth.get_user_model().objects.get(username="olive")
