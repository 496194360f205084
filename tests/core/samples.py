"""A small valid belt, for tests that make one part of it invalid."""

from __future__ import annotations

import copy
from typing import Any

VALID: dict[str, Any] = {
    "categories": ["crm"],
    "plugins": [{"name": "git", "namespace": "git"}, {"name": "shell", "category": "shell"}],
    "tools": [{"key": "git__status", "plugin": "git"}, {"key": "run", "plugin": "shell"}, {"key": "think"}],
    "toolkits": [{"key": "dev", "members": ["run", "think"]}, {"key": "vcs", "members": ["git__status"]}],
    "loadouts": [{"name": "house"}],
    "agents": [{"key": "ada", "allowed_toolkits": ["dev", "vcs"], "initial_toolkits": ["vcs"]}],
    "sub_apps": [{"key": "chat", "tool_names": ["run"], "agents": ["ada"]}],
}


def valid_belt_with(section: str, *entries: Any) -> dict[str, Any]:
    """Return the valid belt with these entries at the end of a section."""
    document = copy.deepcopy(VALID)
    document[section] += entries
    return document
