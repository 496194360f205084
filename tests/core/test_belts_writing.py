"""Tests that belts are written in a stable form."""

from __future__ import annotations

import json
from typing import Any

from toolbelt.core import belts


def test_a_dump_omits_defaults_and_has_a_fixed_order() -> None:
    document = {
        "agents": [
            {
                "protected": False,
                "tools_config": {"x": True, "dev": None},
                "title": "",
                "key": "ada",
                "budget": {},
            }
        ],
        "tools": [{"seen": True, "default_on": False, "description": "d", "key": "x", "input_schema": None}],
        "toolkits": [
            {"triggers": [], "tool_notes": {}, "members": [{"tool": "x", "options": None}], "key": "dev"}
        ],
        "loadouts": [{"disabled": [], "parent": "full", "name": "l"}],
        "plugins": [{"active": False, "status": "ready", "name": "p"}],
        "sub_apps": [],
    }
    assert json.dumps(belts.dump(belts.load(document))) == json.dumps(
        {
            "plugins": [{"name": "p", "active": False}],
            "tools": [{"key": "x", "description": "d"}],
            "toolkits": [{"key": "dev", "members": ["x"]}],
            "loadouts": [{"name": "l", "parent": "full"}],
            "agents": [{"key": "ada", "tools_config": {"x": True}}],
        }
    )


EVERYTHING: dict[str, Any] = {
    "categories": ["crm"],
    "plugins": [
        {
            "name": "git",
            "namespace": "git",
            "title": "Git",
            "description": "d",
            "category": "crm",
            "status": "failed",
            "active": False,
            "trusted": True,
            "blocked": True,
            "block_ends": "2031-05-04T14:00:00Z",
            "upstream": {
                "command": "mcp-server-git",
                "args": ["-r", "."],
                "env": {"LEVEL": "${LEVEL}"},
                "cwd": "/srv",
                "timeout": 5,
            },
            "in_code": True,
            "declared_by": ["ada"],
            "not_running": ["git__log"],
            "preapproved": {"git__log": "2:sha256:0"},
            "keep_descriptions": True,
            "reject_tools": ["drop_*"],
            "reject_all_but": ["log"],
            "instructions": "sha256:0",
            "instructions_seen": "sha256:0",
        }
    ],
    "tools": [
        {
            "key": "git__log",
            "kind": "prompt",
            "title": "Log",
            "description": "d",
            "plugin": "git",
            "category": "git",
            "default_on": True,
            "input_schema": {"required": ["n"], "type": "object"},
            "output_schema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            "policy": "p",
            "blocked": True,
            "block_ends": "2031-05-04T14:00:00Z",
            "retired": True,
            "seen": False,
            "approved": "sha256:0",
            "details": {"_meta": {"a": 1}},
            "details_approved": "sha256:1",
            "approved_version": {"description": "was"},
            "upstream_name": "log",
            "varies": True,
            "keep_description": True,
            "repairs": {"inputSchema": {"code": "missing"}},
            "recorded_fields": ["n"],
            "brings": ["private"],
        }
    ],
    "toolkits": [
        {
            "key": "vcs",
            "title": "VCS",
            "description": "d",
            "plugin": "git",
            "members": [{"tool": "git__log", "options": {"n": [1, None]}}],
            "policy": "p",
            "policy_when_off": "off",
            "tool_notes": {"git__log": "n"},
            "triggers": [
                {
                    "name": "t",
                    "any": ["a"],
                    "all": [["b"], ["c", "d"]],
                    "none": ["e"],
                    "focus": ["git__log"],
                    "tool_choice": "required",
                }
            ],
            "examples": "# Skill",
            "blocked": True,
            "block_ends": "2031-05-04T14:00:00Z",
            "brings": ["private"],
        }
    ],
    "loadouts": [
        {
            "name": "house",
            "description": "d",
            "parent": "full",
            "plugins": ["think"],
            "categories": ["crm"],
            "discoverable": ["docker*"],
            "disabled": ["git"],
            "denied_risks": ["writes", "unstated"],
        }
    ],
    "agents": [
        {
            "key": "ada",
            "title": "Ada",
            "description": "d",
            "role": "r",
            "model": "m",
            "kind": "plan",
            "loadout": "house",
            "tools": [{"tool": "git__log", "options": {"n": [1, None]}}],
            "tools_config": {"git__log": False, "vcs": True},
            "ends": {"vcs": {"at": "2099-01-02T03:04:05Z", "then": False, "by": "anna"}},
            "allowed_toolkits": ["vcs"],
            "initial_toolkits": ["vcs"],
            "budget": {"max_tools": 3, "max_tokens": 900, "on_exceed": "defer"},
            "protected": True,
            "archived": True,
            "session_loadouts": ["full"],
            "subagent_kinds": ["explore"],
            "denied_risks": ["destructive"],
            "mcp_loading": "list",
        }
    ],
    "sub_apps": [
        {"key": "chat", "title": "Chat", "description": "d", "tool_names": ["git__log"], "agents": ["ada"]}
    ],
    "gate_rules": [
        {
            "key": "rule",
            "effect": "ask",
            "agents": ["ada"],
            "kinds": ["plan"],
            "sub_apps": ["chat"],
            "tools": ["git__log", "git__*"],
            "toolkits": ["dev"],
            "plugins": ["git"],
            "risks": ["writes", "unstated"],
            "when": {"count": {"maximum": 5}},
            "unless": {"required": ["path"], "type": "object"},
            "labels": ["private", "untrusted"],
            "without": ["checked"],
            "more_than": {"calls": 20, "per": "10m", "of": "session"},
            "reason": "r",
            "announce": True,
            "observed": True,
            "ends": "2031-05-04T14:00:00Z",
            "approvals": 2,
            "expires": 60,
            "approvers": ["finance"],
        }
    ],
}


def test_every_configurable_field_round_trips() -> None:
    for kind in belts.KINDS.values():
        if kind.fields:
            (entry,) = EVERYTHING[kind.section]
            assert tuple(entry) == kind.fields
    # Loaded leniently because no valid plugin has every field.
    assert json.dumps(belts.dump(belts.load(EVERYTHING, lenient=True))) == json.dumps(EVERYTHING)
