"""Tests that each role may open exactly the URLs of the dashboard that docs/reference/roles.md lists.

A URL that is not in the table fails a test, and so does a difference between the table and that page.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client

from tests.web import asking
from tests.web.test_authorization import ADDRESSES, CHANGES, SAMPLES
from toolbelt import models
from toolbelt.control import drafts, writing
from toolbelt.control.access import switches
from toolbelt.control.people import roles, tokens

pytestmark = pytest.mark.django_db
SETUP = writing.by("setup", via="command")
# ``own`` operates only ada, and ``other`` only bob; all sample URLs are ada's.
PEOPLE = (
    "nobody",
    "without a role",
    "approver",
    "viewer",
    "other",
    "own",
    "operator",
    "administrator",
    "superuser",
)
MAY: Mapping[str, tuple[str, ...]] = {
    "anyone": PEOPLE,
    "every user": PEOPLE[1:],
    "viewers": PEOPLE[3:],
    "operators of any agent": PEOPLE[4:],
    "operators of this agent": PEOPLE[5:],
    "operators": PEOPLE[6:],
    "administrators": PEOPLE[7:],
    "deciders about any agent": ("approver", *PEOPLE[4:]),
    "deciders about this agent": ("approver", *PEOPLE[5:]),
    "nobody": (),
}
TABLE: Mapping[str, str] = {
    # Viewing
    "login": "anyone",
    "passkey": "anyone",
    # Not found without the secret of a link: tests/web/test_password_links.py
    "password_link": "anyone",
    # Sends someone who is logged in on.
    "second_factor": "every user",
    # Not found, unless there is a provider: tests/web/test_provider_login.py
    "to_provider": "anyone",
    "provider_callback": "anyone",
    "logout": "every user",
    "home": "every user",
    "search": "every user",
    "flip": "operators of this agent",
    "account": "every user",
    "change_password": "every user",
    # With a password that is stored here, and confirmed: tests/web/test_factors.py
    "confirm_account": "every user",
    "add_app": "every user",
    "add_passkey": "every user",
    "recovery_codes": "every user",
    "rename_passkey": "every user",
    "remove_factor": "every user",
    "end_login": "every user",
    "end_other_logins": "every user",
    "change_time_zone": "every user",
    "change_alerts": "every user",
    "change_density": "every user",
    "save_view": "every user",
    "delete_view": "every user",
    "proof": "viewers",
    "document": "every user",
    "documents": "every user",
    "help": "every user",
    "agents": "every user",
    "agent_access": "every user",
    "effect": "every user",
    "why": "every user",
    "directive": "every user",
    "tool_options": "every user",
    "preview": "every user",
    "sessions": "every user",
    "history": "every user",
    "connect": "every user",
    "settings": "every user",
    "compare": "every user",
    "matrix": "every user",
    "toolkits": "every user",
    "toolkit": "every user",
    "tools": "every user",
    "tool": "every user",
    "loadouts": "every user",
    "loadout": "every user",
    "sub_apps": "every user",
    "sub_app": "every user",
    "gate_rules": "every user",
    "gate_rule": "every user",
    "calls": "viewers",
    "audit_log": "every user",
    "earlier_audit_log": "every user",
    "call": "viewers",
    "download_calls": "viewers",
    "download_audit_log": "every user",
    "plugins": "every user",
    "plugin": "every user",
    "import_export": "every user",
    "export_belt": "every user",
    "check_belt": "administrators",
    "propose": "administrators",
    "live": "every user",
    "status": "administrators",
    "replays": "administrators",
    "alerts": "viewers",
    "test_alert": "administrators",
    # One agent's switches and sessions
    "bulk_tools": "operators of any agent",
    "bulk_agents": "operators of any agent",
    "bulk_toolkit": "operators of any agent",
    "bulk_agent": "operators of this agent",
    "apply_bulk": "operators of this agent",
    "switch": "operators of this agent",
    "override": "operators of this agent",
    "reset": "operators of this agent",
    "evict": "operators of this agent",
    "clear_label": "operators of this agent",
    "undo": "operators of this agent",
    "copy": "operators of this agent",
    # Configuration shared by all agents
    "change_settings": "operators",
    "archive": "operators",
    "edit_toolkit": "operators",
    "save_toolkit": "operators",
    "block_toolkit": "operators",
    "block_tool": "operators",
    "purge_toolkit": "operators",
    "purge_tool": "operators",
    "switch_plugin": "operators",
    "sign_in": "operators",
    "sign_out": "operators",
    "signed_in": "every user",
    "sign_in_own": "operators of any agent",
    "sign_out_own": "every user",
    "refresh_plugin": "operators",
    "refresh_plugins": "operators",
    "drafts": "every user",
    "draft": "viewers",
    "draft_proof": "viewers",
    "save_draft": "operators of this agent",
    "apply_draft": "operators of this agent",
    "observe_draft": "operators of this agent",
    "schedule_draft": "operators of this agent",
    "roll_out_draft": "operators of this agent",
    "stop_draft": "operators of this agent",
    "discard_draft": "operators of this agent",
    "review": "every user",
    "decide": "operators",
    "approvals": "every user",
    "approval": "deciders about this agent",
    "decide_approvals": "deciders about any agent",
    "revoke_approval": "deciders about this agent",
    "edit_approval": "deciders about this agent",
    "reconnect_plugin": "operators",
    "new_agent": "administrators",
    "create_agent": "administrators",
    "set_operators": "administrators",
    "import_belt": "administrators",
    "new_toolkit": "administrators",
    "create_toolkit": "administrators",
    "remove_toolkit": "administrators",
    "new_loadout": "administrators",
    "create_loadout": "administrators",
    "edit_loadout": "administrators",
    "save_loadout": "administrators",
    "remove_loadout": "administrators",
    "new_sub_app": "administrators",
    "create_sub_app": "administrators",
    "edit_sub_app": "administrators",
    "save_sub_app": "administrators",
    "remove_sub_app": "administrators",
    "new_gate_rule": "administrators",
    "create_gate_rule": "administrators",
    "edit_gate_rule": "administrators",
    "save_gate_rule": "administrators",
    "remove_gate_rule": "administrators",
    "swap": "administrators",
    "add_server": "administrators",
    "add_client_plugin": "administrators",
    "save_client_plugin": "administrators",
    "choose_declarers": "operators",
    "decide_instructions": "operators",
    "keep_description": "operators",
    "label_tool": "operators",
    "record_fields": "operators",
    "save_server": "administrators",
    "import_servers": "administrators",
    "check_servers": "administrators",
    "save_servers": "administrators",
    "tokens": "administrators",
    "people": "administrators",
    "create_person": "administrators",
    "person_roles": "administrators",
    "person_active": "administrators",
    "reset_second_factor": "administrators",
    "end_logins": "administrators",
    "make_password_link": "administrators",
    "withdraw_password_link": "administrators",
    "connect_token": "administrators",
    "first_request": "administrators",
    "issue_token": "administrators",
    "revoke_token": "administrators",
    # One's own; those of others require permissions: tests/web/test_connections.py
    "connections": "every user",
    "revoke_connection": "every user",
}
# Form fields and query parameters that the permission check depends on.
SENT: Mapping[str, Mapping[str, str]] = {
    "apply_bulk": {"on": "false", "seen": '{"ada": {"issues": true}}'},
    "copy": {"a": "bob", "b": "ada"},
    "save_draft": {"draft_of": "/agents/ada/switches/issues/", "on": "unset", "was": "false"},
    "import_belt": {"belt": '{"agents": [{"key": "new"}]}'},
    "flip": {"agent": "ada", "key": "issues", "on": "off"},
    "bulk_tools": {"set": "tools-false"},
    "bulk_agents": {"set": "toolkits-false", "key": "issues"},
    "bulk_agent": {"set": "tools-false"},
    "bulk_toolkit": {"set": "toolkits-false"},
}
WEB = [
    (name.removeprefix("web:"), address, "POST" if name in CHANGES or name == "web:logout" else "GET")
    for name, address in ADDRESSES
    if name.startswith("web:")
]


def cookie(role: str) -> str:
    """Create a user, log them in, and return their session cookie."""
    if role == "nobody":
        return ""
    user = get_user_model().objects.create_user(
        role, password=role, is_superuser=role == "superuser", is_staff=role == "superuser"
    )
    if role not in ("superuser", "without a role"):
        roles.assign(SETUP, role, {"own": "viewer", "other": "viewer"}.get(role, role))  # type: ignore[arg-type]
    if role in ("own", "other"):
        roles.set_operators(SETUP, "ada" if role == "own" else "bob", [role])
    user.refresh_from_db()
    browser = Client()
    browser.force_login(user)
    return browser.cookies["sessionid"].value


def send_request(session_cookie: str, name: str, address: str, method: str) -> Any:
    """Send a request with a session cookie, and roll back its changes."""
    browser = Client()
    if session_cookie:
        browser.cookies["sessionid"] = session_cookie
    send = browser.post if method == "POST" else browser.get
    with transaction.atomic():
        response = send(address, SENT.get(name, {}))
        transaction.set_rollback(True)
    return response


def is_allowed(response: Any) -> bool:
    is_login_redirect = response.headers.get("Location", "").startswith("/login/?next=")
    assert response.status_code < 500, response
    return response.status_code not in (401, 403) and not is_login_redirect


def test_the_table_lists_exactly_the_urls_of_the_dashboard():
    there = {name for name, _, _ in WEB}
    assert there == TABLE.keys(), "say in TABLE who may go there, and tell it in docs/reference/roles.md"


@pytest.mark.parametrize("role", PEOPLE)
def test_each_role_can_open_exactly_the_urls_in_the_table(role: str, belt: None) -> None:
    session_cookie = cookie(role)
    tokens.issue(SETUP, agent="ada")
    done = switches.flip(SETUP.replace(confirm=True), "ada", "issues", False)
    approval = asking.ask({"amount": 700})
    draft = drafts.save(SETUP, lambda write: switches.flip(write, "ada", "issues", True))
    allowed = {}
    for name, address, method in WEB:
        address = address.replace("/audit/1/", f"/audit/{done.entry}/")
        address = address.replace(f"/{SAMPLES['approval']}/", f"/{approval.key}/")
        address = address.replace(SAMPLES["draft"], str(draft.key))
        response = send_request(session_cookie, name, address, method)
        allowed[name] = is_allowed(response)
    assert {name: role in MAY[may] for name, may in TABLE.items()} == allowed


def test_an_operator_of_one_agent_cannot_change_other_agents(belt: None) -> None:
    browser = Client(headers={"HX-Request": "true"})
    browser.cookies["sessionid"] = cookie("own")
    for agent, expected in (("ada", 200), ("bob", 403)):
        sent = {"on": "false", "was": "true" if agent == "ada" else "unset", "confirm": "yes"}
        assert browser.post(f"/agents/{agent}/switches/issues/", sent).status_code == expected
    seen = '{"ada": {"issues": false}, "bob": {"issues": null}}'
    assert browser.post("/bulk/", {"on": "true", "seen": seen, "confirm": "yes"}).status_code == 403
    rows = models.ToolkitSwitch.objects.filter(toolkit__key="issues").values_list("agent__key", "on")
    assert list(rows) == [("ada", False)]


def test_a_bulk_change_names_the_agents_that_the_user_may_not_change(belt: None) -> None:
    browser = Client()
    browser.cookies["sessionid"] = cookie("own")
    response = browser.get("/bulk/toolkits/issues/", {"set": "toolkits-false", "for": ["ada", "bob"]})
    assert response.status_code == 403
    assert "You do not have permission to flip switches of bob." in response.content.decode()
    # Without a selection, it applies to the agents that they operate.
    assert "ada" in browser.get("/bulk/toolkits/issues/", {"set": "toolkits-false"}).content.decode()


@pytest.mark.parametrize("role", ["viewer", "own", "operator"])
def test_lists_have_controls_only_for_agents_that_the_user_operates(role: str, belt: None) -> None:
    browser = Client()
    browser.cookies["sessionid"] = cookie(role)
    own = {"viewer": set(), "own": {"ada"}, "operator": {"ada", "bob"}}[role]
    for address in ("/matrix/", "/toolkits/issues/"):
        page = browser.get(address).content.decode()
        for agent in ("ada", "bob"):
            assert (f'action="/agents/{agent}/switches/issues/"' in page) is (agent in own), address
            assert f'id="at:{agent}:issues:state"' in page
    ticks = browser.get("/toolkits/issues/").content.decode()
    assert {agent for agent in ("ada", "bob") if f'name="for" value="{agent}"' in ticks} == own
    assert ('action="/bulk/toolkits/issues/"' in ticks) is bool(own)


def test_query_count_does_not_grow_with_the_agents_a_user_operates(
    belt: None, django_assert_max_num_queries: Any, django_assert_num_queries: Any
) -> None:
    session_cookie = cookie("own")
    counts: dict[str, list[int]] = {}
    for agents in (["ada"], ["ada", "bob"]):
        for agent in agents:
            roles.set_operators(SETUP, agent, ["own"])
        for address in ("/matrix/", "/toolkits/issues/", "/calls/", "/audit/", "/"):
            browser = Client()
            browser.cookies["sessionid"] = session_cookie
            browser.get(address)
            with django_assert_max_num_queries(60) as captured:
                browser.get(address)
            counts.setdefault(address, []).append(len(captured))
    assert {address: count[0] for address, count in counts.items()} == {
        address: count[1] for address, count in counts.items()
    }


def table_lines() -> list[str]:
    """Return the table's lines in the form of the reference."""
    by_role: dict[str, list[str]] = {}
    for name, role in TABLE.items():
        by_role.setdefault(role, []).append(f"`{name}`")
    return [f"| {role} | {', '.join(sorted(names))} |" for role, names in by_role.items()]


def test_the_roles_reference_contains_the_table() -> None:
    reference = (Path(__file__).parents[2] / "docs/reference/roles.md").read_text()
    missing = [line for line in table_lines() if line not in reference]
    assert not missing, "write it in docs/reference/roles.md:\n" + "\n".join(missing)
