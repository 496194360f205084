"""Tests that every page is accessible: to screen readers, in both themes, wide and narrow, without motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from django.contrib.auth import get_user_model
from django.urls import get_resolver
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.browser import accessibility, operating
from tests.browser.conftest import OpensPage
from tests.web import servers
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.people import saved_views
from toolbelt.runtime import calls

pytestmark = pytest.mark.browser

# Access with less on it: axe needs seconds for a page of forty sections.
OF_MANY = "/agents/runner/?q=git&open=toolkit-local_git"
OF_GIT = "/agents/runner/?q=git_status"
OF_ISSUES = "/agents/runner/?q=issue_write"
# The walk through all pages is taken in so many parts, that processes may share it.
PARTS = 10
# A colour on its way from light to dark is neither.
STILL = {"reduced_motion": "reduce"}
# One address of every page, by its name; and what is answered in parts only, or leads somewhere else.
PAGES: Mapping[str, tuple[str, ...]] = {
    "home": ("/",),
    "help": ("/help/",),
    "search": ("/search/", "/search/?q=turn+off+slack+for+assistant"),
    "flip": ("/flip/?agent=assistant&key=team_chat&on=off",),
    "status": ("/status/",),
    "account": ("/account/",),
    "new_agent": ("/new/agent/",),
    "agents": ("/agents/", "/agents/?q=nobody"),
    "agent_access": (OF_MANY, "/agents/runner/?q=nothing", f"{OF_GIT}&message=commit+this"),
    "preview": (
        "/agents/kiosk/preview/?message=what+time+is+it",
        "/agents/kiosk/preview/?view=policy",
        "/agents/planner/preview/?view=json&format=openai_chat",
        "/agents/kiosk/preview/?view=json&format=mcp",
        "/agents/kiosk/preview/?view=why&tool=git__git_status",
    ),
    "sessions": ("/agents/assistant/sessions/", "/agents/runner/sessions/"),
    "effect": ("/agents/assistant/effect/devops/",),
    "why": ("/agents/assistant/why/tickets/", "/agents/kiosk/why/git__git_status/"),
    "bulk_agent": ("/agents/assistant/bulk/?q=git&set=tools-false",),
    "bulk_tools": ("/bulk/tools/?q=git&every=yes&also_off=yes&for=kiosk&set=tools-false",),
    "bulk_agents": ("/bulk/agents/?key=devops&set=toolkits-true",),
    "bulk_toolkit": ("/bulk/toolkits/devops/?set=toolkits-false",),
    "history": ("/agents/omni/history/", "/agents/runner/history/"),
    "connect": ("/agents/generalist/connect/",),
    "settings": ("/agents/generalist/settings/",),
    "matrix": ("/matrix/?q=git", "/matrix/?q=git&agent=runner"),
    "toolkits": ("/toolkits/?q=git",),
    "toolkit": ("/toolkits/local_git/?message=commit+this",),
    "edit_toolkit": ("/toolkits/issues/edit/?message=file+a+bug",),
    "new_toolkit": ("/new/toolkit/",),
    "loadouts": ("/loadouts/",),
    "loadout": ("/loadouts/secure-review/", "/loadouts/developer/"),
    "edit_loadout": ("/loadouts/secure-review/edit/",),
    "new_loadout": ("/new/loadout/?from=developer",),
    "sub_apps": ("/sub-apps/",),
    "sub_app": ("/sub-apps/war-room/",),
    "edit_sub_app": ("/sub-apps/war-room/edit/",),
    "new_sub_app": ("/new/sub-app/",),
    "tools": ("/tools/?q=git_status", "/tools/?q=nothing"),
    "tool": ("/tools/git__git_status/",),
    "calls": ("/calls/", "/calls/?view=log&agent=runner", "/calls/?view=unused"),
    "call": ("/calls/1/",),
    "audit_log": ("/audit/", "/audit/?person=nobody"),
    "compare": ("/compare/", "/compare/?a=kiosk&b=runner", "/compare/?a=loadout:minimal&b=kiosk&show=all"),
    "import_export": ("/belt/",),
    "tokens": ("/tokens/",),
    "people": ("/people/",),
    "plugins": ("/plugins/?q=vault",),
    "plugin": ("/plugins/vault/",),
    "review": ("/review/", "/review/?plugin=vault"),
    "add_server": ("/plugins/add/",),
    "add_client_plugin": ("/plugins/add/client/",),
    "import_servers": ("/plugins/add/file/",),
    "login": (),  # for who is not logged in
}
NO_PAGES = {
    "live",
    "apply_bulk",
    "logout",
    "change_password",
    "change_time_zone",
    "change_density",
    "directive",
    "tool_options",
    "switch",
    "override",
    "reset",
    "undo",
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
    "save_server",
    "check_servers",
    "save_servers",
    "save_client_plugin",
    "choose_declarers",
    "switch_plugin",
    "refresh_plugin",
    "refresh_plugins",
    "decide",
    "reconnect_plugin",
    "save_loadout",
    "remove_loadout",
    "create_loadout",
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
}


def ask(page: Page) -> None:
    """Let a question stand open."""
    operating.switch(page, "issues").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def ask_on_a_page(page: Page) -> None:
    """Ask as a browser without scripts is asked."""
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


def evict(page: Page) -> None:
    """Create a session, and open the dialog that asks whether to restart it."""
    page.get_by_role("button", name="Evict").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def issue(page: Page) -> None:
    """Let a token stand on the page, and its line."""
    page.get_by_role("button", name="Issue").click()
    expect(page.get_by_text("not shown again")).to_be_visible()


def save_nonsense(page: Page) -> None:
    """Let a form stand there that was not taken."""
    page.get_by_label("Maximum tools").evaluate("(field) => { field.min = ''; field.value = '-1' }")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("alert")).to_be_visible()


def flip(page: Page) -> None:
    """Let a notice and an effect stand on the page."""
    operating.switch(page, "local_git").click()
    expect(operating.notice(page)).to_contain_text("local_git is off")


def choose(view: str) -> Callable[[Page], None]:
    """Look at another part of what the model sees."""
    return lambda page: page.get_by_role("radio", name=view).check(force=True)


def propose(page: Page) -> None:
    """Let it stand there what a save would do to whom."""
    page.get_by_label("Disabled").fill("git")
    page.get_by_role("button", name="Save changes", exact=True).last.click()
    expect(page.get_by_role("heading", name="Effect on agents")).to_be_visible()


def open_menu(page: Page) -> None:
    page.locator(".section-head .acts-opener").first.click()
    expect(page.locator(".acts-body:popover-open .acts-effects")).to_be_visible()


def jump(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or say what to do").fill("turn off slack for assistant")
    expect(page.get_by_role("option", name="Turn off team_chat for assistant")).to_be_visible()


def open_bulk(page: Page) -> None:
    page.get_by_text("Bulk actions").click()


STEPS: Mapping[str, tuple[str, Callable[[Page], None]]] = {
    "a question": (OF_ISSUES, ask),
    "a question on a page": (OF_ISSUES, ask_on_a_page),
    "a notice": (OF_GIT, flip),
    "a menu": (OF_GIT, open_menu),
    "all that is shown": (OF_GIT, open_bulk),
    "the policy": (OF_GIT, choose("Policy")),
    "the directive": (OF_GIT, choose("Directive")),
    "a session": ("/agents/assistant/sessions/", evict),
    "a token": ("/tokens/?agent=runner", issue),
    "a proposal": ("/loadouts/secure-review/edit/", propose),
    "a refused form": ("/agents/runner/settings/", save_nonsense),
    "search and jump": ("/agents/", jump),
    "the shortcuts": ("/agents/", lambda page: page.keyboard.press("?")),
}


def test_no_page_is_forgotten() -> None:
    names = set(get_resolver("toolbelt.web.urls").reverse_dict)
    assert {name for name in names if isinstance(name, str)} == {*PAGES, *NO_PAGES}


@pytest.fixture
def eventful(trusted_olive: None) -> None:
    """Let there be something on each page, and let olive into all of them."""
    switches.flip(writing.by("otto", via="api").replace(reason="Too many."), "omni", "tickets", False)
    servers.changed("vault")
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
    saved_views.save(get_user_model().objects.get(username="olive").pk, "tools", "Git", "q=git_status")


@pytest.mark.usefixtures("eventful")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_for_everybody(open_page: OpensPage, part: int) -> None:
    """No page has a finding of axe, and none lets the browser complain, which `open_page` looks after."""
    page = open_page("/help/", **STILL)
    found = []
    for address in [address for addresses in PAGES.values() for address in addresses][part::PARTS]:
        page.goto(address)
        found += accessibility.findings(page, address)
    assert found == []


@pytest.mark.usefixtures("eventful")
@pytest.mark.parametrize("name", STEPS)
def test_what_one_does_leaves_it_so(open_page: OpensPage, name: str) -> None:
    address, step = STEPS[name]
    page = open_page(address, expects="status of 422", **STILL)
    step(page)
    assert accessibility.findings(page, name) == []


@pytest.mark.usefixtures("eventful")
def test_what_others_get_to_see_is_for_everybody(open_page: OpensPage) -> None:
    page = open_page("/login/", who=None, **STILL)
    found = accessibility.findings(page, "/login/")
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("alert").wait_for()
    found += accessibility.findings(page, "a wrong password")
    found += accessibility.findings(open_page(OF_GIT, who="rosa", **STILL), "for one who may only look")
    found += accessibility.findings(open_page("/nothing/", expects="status of 404", **STILL), "an error")
    assert found == []


def test_without_motion_nothing_moves(open_page: OpensPage) -> None:
    """On every page, says `accessibility.findings`; here, that it finds what moves."""
    page = open_page(OF_GIT)
    assert accessibility.moving(page)
    page.emulate_media(reduced_motion="reduce")
    assert accessibility.moving(page) == []
