"""Tests of what each role may do over the API, for every operation of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction

from tests.api.conftest import SETUP, Asking
from tests.api.test_authorization import OPERATIONS, address
from tests.web.test_roles_matrix import MAY, PEOPLE
from toolbelt.control import drafts
from toolbelt.control.access import switches
from toolbelt.control.people import roles, tokens

# Every operator's token may read and ask, except for the operations in the table.
TABLE: Mapping[str, str] = {
    "list_calls": "viewers",
    "prove_change": "viewers",
    "propose_belt": "administrators",
    "list_usage_of_agents": "viewers",
    "list_usage_of_tools": "viewers",
    "export_belt": "viewers",
    "read_past_belt": "viewers",
    "list_plugins": "viewers",
    "read_plugin": "viewers",
    "read_declared_tools": "viewers",
    "read_category": "viewers",
    "list_categories": "viewers",
    "read_plugin_status": "viewers",
    "review_plugin": "viewers",
    "read_instructions": "viewers",
    "decide_instructions": "operators",
    "purge_tool": "operators",
    "purge_toolkit": "operators",
    "list_tokens": "administrators",
    "issue_token": "administrators",
    "revoke_token": "administrators",
    "call_tool": "operators of this agent",
    "check_call": "operators of this agent",
    "admit_calls": "operators of this agent",
    "report_outcome": "operators of this agent",
    "record_calls": "operators of this agent",
    "read_approval": "deciders about this agent",
    "approve_call": "deciders about this agent",
    "reject_call": "deciders about this agent",
    "revoke_approval": "deciders about this agent",
    "edit_call": "deciders about this agent",
    "equip_session": "operators of this agent",
    "evict_session": "operators of this agent",
    "clear_label": "operators of this agent",
    "list_alerts": "viewers",
    "test_alert": "administrators",
    "flip_switch": "operators of this agent",
    "clear_switch": "operators of this agent",
    "override_tool": "operators of this agent",
    "clear_override": "operators of this agent",
    "put_tools_config": "operators of this agent",
    "change_tools_config": "operators of this agent",
    "undo_change": "operators of this agent",
    "create_draft": "administrators",
    "apply_draft": "operators of this agent",
    "observe_draft": "operators of this agent",
    "schedule_draft": "operators of this agent",
    "roll_out_draft": "operators of this agent",
    "stop_draft": "operators of this agent",
    "read_report": "viewers",
    "discard_draft": "operators of this agent",
    "read_draft": "viewers",
    "set_operators": "administrators",
    "import_belt": "administrators",
    **{f"{act}_{kind}": "administrators" for act in ("create", "remove") for kind in ("agent", "toolkit")},
    **{
        f"{act}_{kind}": "administrators"
        for act in ("create", "change", "remove")
        for kind in ("loadout", "sub_app", "gate_rule")
    },
    "create_category": "administrators",
    "remove_category": "administrators",
    "create_plugin": "administrators",
    "create_tool": "administrators",
    "change_agent": "operators",
    "change_toolkit": "operators",
    "change_tool": "operators",
    "change_plugin": "operators",
    "declare_tools": "operators",
    "refresh_plugin": "operators",
    "end_sign_in": "operators",
    "read_sign_in": "viewers",
    "approve_tools": "operators",
    "reject_tools": "operators",
}
READS = (
    "list_",
    "read_",
    "get_",
    "ask_",
    "export_",
    "preview_",
    "explain_",
    "search_",
    "compare_",
    "review_",
)
# The bodies of operations whose permissions depend on the body.
BODIES: Mapping[str, Any] = {
    "import_belt": {"agents": [{"key": "new"}]},
    "create_draft": {"belt": {"agents": [{"key": "new"}]}},
    "schedule_draft": {"starts": "2099-01-01T00:00:00Z"},
}


def required_role(name: str) -> str:
    if name in TABLE:
        return TABLE[name]
    assert name.startswith(READS), f"say in TABLE who may {name}: it does not look like reading"
    return "every user"


def token(who: str) -> str:
    get_user_model().objects.create_user(who, is_superuser=who == "superuser")
    if who not in ("superuser", "without a role"):
        roles.assign(SETUP, who, {"own": "viewer", "other": "viewer"}.get(who, who))  # type: ignore[arg-type]
    if who in ("own", "other"):
        roles.set_operators(SETUP, "ada" if who == "own" else "bob", [who])
    return tokens.issue(SETUP, user=who, scope="write").text


@pytest.mark.parametrize("who", PEOPLE[1:])
def test_each_role_has_the_permissions_in_the_table(who: str, stored: None) -> None:
    api_client = Asking(token(who))
    done = switches.flip(SETUP.replace(confirm=True), "ada", "reading", True)
    drafts.save(SETUP, lambda write: switches.flip(write, "ada", "reading", None))
    actual, expected = {}, {}
    for method, path, name in OPERATIONS:
        body = BODIES.get(name, None if method in ("GET", "DELETE") else {})
        url = address(path)
        if name == "undo_change":
            url = path.replace("{change}", str(done.entry))
        with transaction.atomic():
            answer = api_client.send(method, url, body)
            transaction.set_rollback(True)
        assert answer.status_code < 500, (name, answer.content)
        assert answer.status_code != 401, name
        actual[name] = answer.status_code != 403
        expected[name] = who in MAY[required_role(name)]
    assert expected == actual


def test_the_table_only_names_existing_operations() -> None:
    assert TABLE.keys() <= {name for _, _, name in OPERATIONS}
