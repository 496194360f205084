"""Tests that every page passes axe in both themes, wide and narrow, and that reduced motion is respected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.urls import get_resolver
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.browser import accessibility, dashboard
from tests.browser.conftest import PASSWORD, OpensPage
from tests.web import asking, servers
from toolbelt import models
from toolbelt.control import drafts, trials, writing
from toolbelt.control.access import switches
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.control.people import saved_views
from toolbelt.core import call_approvals as values
from toolbelt.runtime import calls

pytestmark = pytest.mark.browser

# Access pages with few tools, because axe takes seconds for forty sections.
MANY_TOOLS = "/agents/runner/?q=git&open=toolkit-local_git"
ONE_TOOL = "/agents/runner/?q=git_status"
DESTRUCTIVE_TOOL = "/agents/runner/?q=issue_write"
# The walk through all pages is split, so that several processes can share it.
PARTS = 4
# The paths of every page by the name of its URL: one, or more if they show something of different structure.
PAGES: Mapping[str, tuple[str, ...]] = {
    "home": ("/",),
    "document": ("/help/documents/reference/commands.md",),
    "documents": ("/help/documents/",),
    "help": ("/help/",),
    "search": ("/search/", "/search/?q=turn+off+slack+for+assistant"),
    "flip": ("/flip/?agent=assistant&key=team_chat&on=off",),
    "status": ("/status/",),
    "replays": ("/status/replays/",),
    "alerts": ("/alerts/",),
    "account": ("/account/",),
    "confirm_account": ("/account/confirm/",),
    "new_agent": ("/new/agent/",),
    "drafts": ("/review/drafts/",),
    "draft": (
        "/review/drafts/6f1f0a4c-5e0e-4d53-9d0b-3f3f6f0b7a11/",
        "/review/drafts/6f1f0a4c-5e0e-4d53-9d0b-3f3f6f0b7a12/",
    ),
    "agents": ("/agents/", "/agents/?q=nobody"),
    "agent_access": (MANY_TOOLS, f"{ONE_TOOL}&message=commit+this"),
    "preview": (
        "/agents/kiosk/preview/?message=what+time+is+it",
        "/agents/kiosk/preview/?view=policy",
        "/agents/planner/preview/?view=json&format=openai_chat",
        "/agents/kiosk/preview/?view=json&format=mcp",
        "/agents/kiosk/preview/?view=conversation&model=claude",
        "/agents/kiosk/preview/?view=why&tool=git__git_status",
    ),
    "sessions": ("/agents/assistant/sessions/", "/agents/runner/sessions/"),
    "effect": ("/agents/assistant/effect/devops/",),
    "why": ("/agents/assistant/why/tickets/",),
    "bulk_agent": ("/agents/assistant/bulk/?q=git&set=tools-false",),
    "bulk_tools": ("/bulk/tools/?q=git&every=yes&also_off=yes&for=kiosk&set=tools-false",),
    "bulk_agents": ("/bulk/agents/?key=devops&set=toolkits-true",),
    "bulk_toolkit": ("/bulk/toolkits/devops/?set=toolkits-false",),
    "history": ("/agents/omni/history/",),
    "connect": ("/agents/generalist/connect/",),
    "settings": ("/agents/generalist/settings/",),
    "matrix": ("/matrix/?q=git", "/matrix/?q=git&agent=runner"),
    "toolkits": ("/toolkits/?q=git",),
    "toolkit": ("/toolkits/local_git/?message=commit+this",),
    "edit_toolkit": ("/toolkits/issues/edit/?message=file+a+bug",),
    "new_toolkit": ("/new/toolkit/",),
    "loadouts": ("/loadouts/",),
    "loadout": ("/loadouts/secure-review/",),
    "edit_loadout": ("/loadouts/secure-review/edit/",),
    "new_loadout": ("/new/loadout/?from=developer",),
    "gate_rules": ("/rules/",),
    "gate_rule": ("/rules/no-force-push/",),
    "edit_gate_rule": ("/rules/no-force-push/edit/",),
    "new_gate_rule": ("/new/rule/",),
    "sub_apps": ("/sub-apps/",),
    "sub_app": ("/sub-apps/war-room/",),
    "edit_sub_app": ("/sub-apps/war-room/edit/",),
    "new_sub_app": ("/new/sub-app/",),
    "tools": ("/tools/?q=git_status",),
    "tool": ("/tools/git__git_status/",),
    "calls": ("/calls/", "/calls/?view=log&agent=runner", "/calls/?view=unused"),
    "call": ("/calls/1/",),
    "propose": ("/calls/proposal/?agent=omni", "/calls/proposal/?agent=omni&keep=*x"),
    "audit_log": ("/audit/",),
    "compare": ("/compare/", "/compare/?a=kiosk&b=runner", "/compare/?a=loadout:minimal&b=kiosk&show=all"),
    "import_export": ("/belt/",),
    "connections": ("/connections/",),
    "tokens": ("/tokens/",),
    "people": ("/people/",),
    "plugins": ("/plugins/?q=vault",),
    "plugin": ("/plugins/vault/",),
    "review": ("/review/?plugin=vault",),
    "approvals": ("/review/approvals/",),
    "approval": ("/review/approvals/7F3KQ2MW/",),
    "add_server": ("/plugins/add/",),
    "add_client_plugin": ("/plugins/add/client/",),
    "import_servers": ("/plugins/add/file/",),
    "login": (),  # without a login, below
}
# URLs that change something, return a fragment or a file, or redirect.
NO_PAGES = {
    "live",
    "proof",
    "draft_proof",
    "save_draft",
    "apply_draft",
    "observe_draft",
    "roll_out_draft",
    "schedule_draft",
    "stop_draft",
    "discard_draft",
    "apply_bulk",
    "logout",
    "revoke_connection",
    "change_password",
    # After a confirmation: tests/browser/test_passkeys.py
    "add_app",
    "add_passkey",
    "recovery_codes",
    "rename_passkey",
    "remove_factor",
    "reset_second_factor",
    "end_login",
    "end_other_logins",
    "end_logins",
    "make_password_link",
    "withdraw_password_link",
    # tests/browser/test_login_and_navigation.py
    "password_link",
    "passkey",
    "second_factor",
    "change_time_zone",
    "change_alerts",
    "change_density",
    "directive",
    "tool_options",
    "switch",
    "override",
    "reset",
    "undo",
    "keep_description",
    "label_tool",
    "record_fields",
    "decide_instructions",
    "evict",
    "change_settings",
    "create_agent",
    "set_operators",
    "archive",
    "connect_token",
    "first_request",
    "issue_token",
    "create_person",
    "person_roles",
    "person_active",
    "revoke_token",
    "block_toolkit",
    "block_tool",
    "purge_toolkit",
    "purge_tool",
    "save_server",
    "check_servers",
    "save_servers",
    "save_client_plugin",
    "choose_declarers",
    "switch_plugin",
    "refresh_plugin",
    "refresh_plugins",
    "decide",
    "decide_approvals",
    "edit_approval",
    "revoke_approval",
    "reconnect_plugin",
    "save_loadout",
    "remove_loadout",
    "create_loadout",
    "save_gate_rule",
    "remove_gate_rule",
    "create_gate_rule",
    "save_sub_app",
    "remove_sub_app",
    "create_sub_app",
    "save_toolkit",
    "remove_toolkit",
    "create_toolkit",
    "save_view",
    "delete_view",
    "swap",
    "copy",
    "download_calls",
    "download_audit_log",
    "earlier_audit_log",
    "export_belt",
    "check_belt",
    "import_belt",
    "clear_label",
    "sign_in",
    "sign_in_own",
    "signed_in",
    "sign_out",
    "sign_out_own",
    "test_alert",
    "to_provider",
    "provider_callback",
}

BELT = "agents: [{key: newcomer, tools_config: {tickets: true}}]"


def open_confirmation(page: Page) -> None:
    dashboard.switch(page, "issues").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def open_confirmation_page(page: Page) -> None:
    """Submit the form of a switch as a browser without JavaScript does."""
    form = page.locator("form[action='/agents/runner/switches/issues/']")
    form.locator("[role=switch]").evaluate("(button) => { button.type = 'hidden'; button.form.submit() }")
    form.evaluate(
        """(form) => {
            const on = document.createElement("input");
            Object.assign(on, { type: "hidden", name: "on", value: "true" });
            form.append(on);
            form.submit();
        }"""
    )
    expect(page.get_by_role("link", name="Cancel")).to_be_visible()


def open_eviction(page: Page) -> None:
    page.get_by_role("button", name="Evict").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def issue_token(page: Page) -> None:
    page.get_by_role("button", name="Issue").click()
    expect(page.get_by_text("not shown again")).to_be_visible()


def submit_invalid_form(page: Page) -> None:
    page.get_by_label("Maximum tools").evaluate("(field) => { field.min = ''; field.value = '-1' }")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("alert")).to_be_visible()


def turn_off(page: Page) -> None:
    dashboard.switch(page, "local_git").click()
    expect(dashboard.notice(page)).to_contain_text("local_git is off")


def show_panel(name: str) -> Callable[[Page], None]:
    """Return a step that shows another part of what the model sees."""
    return lambda page: page.get_by_role("radio", name=name).check(force=True)


def preview_save(page: Page) -> None:
    page.get_by_label("Disabled").fill("git")
    page.get_by_role("button", name="Save changes", exact=True).last.click()
    expect(page.get_by_role("heading", name="Effect on agents")).to_be_visible()


def preview_import(page: Page) -> None:
    page.get_by_label("Or paste its text").fill(BELT)
    page.get_by_role("button", name="Preview import").click()
    expect(page.get_by_role("heading", name="Preview of the import")).to_be_visible()


def open_actions(page: Page) -> None:
    page.locator(".section-head .acts-opener").first.click()
    expect(page.locator(".acts-body:popover-open .acts-effects")).to_be_visible()


def open_search(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or say what to do").fill("turn off slack for assistant")
    expect(page.get_by_role("option", name="Turn off Team chat for Assistant")).to_be_visible()


# What opens on a page: where, how, and the part of the page that it changes.
STEPS: Mapping[str, tuple[str, Callable[[Page], None], str]] = {
    "actions of a toolkit": (ONE_TOOL, open_actions, ".acts-body:popover-open"),
    "bulk actions": (ONE_TOOL, lambda page: page.get_by_text("Bulk actions").click(), ".bulk-menu"),
    "policy": (ONE_TOOL, show_panel("Policy"), "#model"),
    "directive": (ONE_TOOL, show_panel("Directive"), "#model"),
    "confirmation": (DESTRUCTIVE_TOOL, open_confirmation, "dialog[open]"),
    "confirmation page": (DESTRUCTIVE_TOOL, open_confirmation_page, "main"),
    "notice": (ONE_TOOL, turn_off, ""),
    "eviction of a session": ("/agents/assistant/sessions/", open_eviction, "dialog[open]"),
    "new token": ("/tokens/?agent=runner", issue_token, "main"),
    "invalid form": ("/agents/runner/settings/", submit_invalid_form, "main"),
    "effect of an edit": ("/loadouts/secure-review/edit/", preview_save, "dialog[open]"),
    "preview of an import": ("/belt/", preview_import, "main"),
    "search": ("/agents/", open_search, "dialog[open]"),
    "shortcuts": ("/agents/", lambda page: page.keyboard.press("?"), "dialog[open]"),
}


def open_still(open_page: OpensPage, path: str, **options: Any) -> Page:
    """Open a page with reduced motion: a color on its way from light to dark is neither."""
    page = open_page("/static/favicon.svg", **options)
    page.emulate_media(reduced_motion="reduce")
    page.goto(path)
    return page


def test_every_url_is_a_tested_page_or_known_to_be_none() -> None:
    names = set(get_resolver("toolbelt.web.urls").reverse_dict)
    assert {name for name in names if isinstance(name, str)} == {*PAGES, *NO_PAGES}


@pytest.fixture
def demo_with_events(olive_is_staff: None) -> None:
    """Let every page show something, and olive see all of them."""
    switches.flip(writing.by("otto", via="api").replace(reason="Too many."), "omni", "tickets", False)
    servers.changed("vault")
    entries.put(
        writing.by("otto", via="api"),
        "gate_rule",
        {
            "key": "no-force-push",
            "effect": "deny",
            "agents": ["runner"],
            "tools": ["git__*"],
            "unless": {"repo_path": {"pattern": "^/srv/"}},
            "reason": "Work in /srv only.",
            "observed": True,
        },
    )
    approved = asking.ask({"path": "/srv/shop", "force": True}, agent="runner", tool="git__git_status", ago=9)
    call_approvals.reject(writing.by("otto", via="api"), approved.key, "Not now.")
    asking.ask({"paths": ["/srv"]}, agent="runner", tool="git__git_status")
    kept = asking.ask({"path": "/srv/kept"}, agent="runner", tool="git__git_status", ago=9)
    call_approvals.approve(writing.by("otto", via="api"), kept.key, kept.shown, values.MAX_ALWAYS)
    arguments = {"path": "/srv/shop", "force": False, "token": "[withheld]"}
    asked = asking.ask(arguments, agent="runner", tool="git__git_status", approvals=2)
    models.Approval.objects.filter(key=asked.key).update(key="7F3KQ2MW")
    models.CallRecord.objects.create(
        pk=1,
        agent="assistant",
        tool="arxiv",
        at=timezone.now(),
        outcome="ok",
        duration_ms=7,
        arguments={"q": "x"},
    )
    calls.run("assistant", "load_tools", {"toolkit": "devops"}, session="s1")
    later = drafts.save(
        writing.by("otto", via="api"), lambda write: switches.flip(write, "assistant", "team_chat", False)
    )
    models.Draft.objects.filter(pk=later.key).update(key="6f1f0a4c-5e0e-4d53-9d0b-3f3f6f0b7a11")
    trials.observe(writing.by("otto", via="api"), "6f1f0a4c-5e0e-4d53-9d0b-3f3f6f0b7a11")
    first = drafts.save(
        writing.by("otto", via="api"), lambda write: switches.flip(write, "explorer", "devops", True)
    )
    models.Draft.objects.filter(pk=first.key).update(key="6f1f0a4c-5e0e-4d53-9d0b-3f3f6f0b7a12")
    by_command = writing.by("otto", via="command").replace(confirm=True)
    trials.roll_out(by_command, "6f1f0a4c-5e0e-4d53-9d0b-3f3f6f0b7a12")
    saved_views.save(get_user_model().objects.get(username="olive").pk, "tools", "Git", "q=git_status")


@pytest.mark.slow
@pytest.mark.usefixtures("demo_with_events")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_passes_axe_in_both_themes(open_page: OpensPage, part: int) -> None:
    paths = [path for paths in PAGES.values() for path in paths][part::PARTS]
    page = open_still(open_page, paths[0])
    problems = []
    for path in paths:
        if path != paths[0]:
            page.goto(path)
        problems += accessibility.problems(page, path)
    assert problems == []


@pytest.mark.slow
@pytest.mark.usefixtures("demo_with_events")
def test_dialogs_menus_notices_and_form_errors_pass_axe_in_both_themes(open_page: OpensPage) -> None:
    page = open_still(open_page, "/help/", expected_errors="status of 422")
    problems = []
    for name, (path, step, part) in STEPS.items():
        page.goto(path)
        step(page)
        problems += accessibility.problems(page, name, part)
    assert problems == []


@pytest.mark.usefixtures("demo_with_events")
def test_the_login_read_only_and_error_pages_pass_axe_in_both_themes(open_page: OpensPage) -> None:
    page = open_still(open_page, "/login/", user=None, expected_errors="status of 404")
    problems = accessibility.problems(page, "login")
    page.get_by_label("User name").fill("rosa")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("alert").wait_for()
    problems += accessibility.problems(page, "wrong password", "main")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Needs attention").wait_for()
    page.goto(ONE_TOOL)
    problems += accessibility.problems(page, "access as a viewer")
    page.goto("/nothing/")
    problems += accessibility.problems(page, "not found")
    assert problems == []


def test_no_element_moves_with_reduced_motion(open_page: OpensPage) -> None:
    """`accessibility.problems` checks this on every page; this test, that it finds what moves."""
    page = open_page(ONE_TOOL)
    assert accessibility.moving_elements(page)
    page.emulate_media(reduced_motion="reduce")
    assert accessibility.moving_elements(page) == []
