"""Tests that every page is accessible: to screen readers, in both themes, at any width, with any names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from axe_playwright_python import base
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.urls import get_resolver
from django.utils import timezone
from playwright.sync_api import Page, ViewportSize, expect

from tests import factories
from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from tests.web import servers
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.runtime import calls

pytestmark = pytest.mark.browser

ACCESS = "/agents/runner/?open=toolkit-local_git"
# The same page with little on it: axe needs seconds for a page of forty sections.
OF_GIT = "/agents/runner/?q=git_status"
OF_ISSUES = "/agents/runner/?q=issue_write"
WIDE: ViewportSize = {"width": 1440, "height": 1000}
NARROW: ViewportSize = {"width": 360, "height": 844}
# The walk through all pages is taken in so many parts, that processes may share it.
PARTS = 10
# A colour on its way from light to dark is neither.
STILL = {"reduced_motion": "reduce"}
# What of axe's rules another look can break.
LOOKS = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")
SOME_OF_EACH_KIND = (
    OF_GIT,
    "/",
    "/agents/",
    "/matrix/?q=git",
    "/toolkits/local_git/",
    "/toolkits/issues/edit/",
    "/tools/?q=git_status",
    "/loadouts/secure-review/edit/",
    "/plugins/?q=vault",
    "/compare/?a=kiosk&b=runner",
    "/agents/generalist/settings/",
    "/agents/kiosk/preview/",
    "/agents/omni/history/",
    "/changes/",
    "/calls/",
    "/belt/",
    "/tokens/",
)
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
    "agent_access": (ACCESS, "/agents/runner/?q=nothing", f"{OF_GIT}&message=commit+this"),
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
    "bulk_tools": ("/bulk/tools/?q=git&for=kiosk&set=tools-false",),
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
    "calls": ("/calls/", "/calls/?agent=runner"),
    "call": ("/calls/1/",),
    "changes": ("/changes/", "/changes/?person=nobody"),
    "compare": ("/compare/", "/compare/?a=kiosk&b=runner", "/compare/?a=loadout:minimal&b=kiosk&show=all"),
    "belt": ("/belt/",),
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
    "directive",
    "switch",
    "override",
    "reset",
    "undo",
    "evict",
    "change_settings",
    "create_agent",
    "name_operators",
    "archive",
    "connect_token",
    "first_request",
    "issue_token",
    "create_person",
    "person_roles",
    "person_active",
    "revoke_token",
    "stop_toolkit",
    "stop_tool",
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
    "swap",
    "copy",
    "download_calls",
    "download_changes",
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


def findings(page: Page, where: str) -> list[str]:
    """Look at the page as it stands: wide and light in full, then narrow and dark for what that can change. Nothing may
    move on it, for who looks does not want that.

    It is loaded once. What axe asks of names, roles and order is the same in every look; colours and widths are not.
    """
    found = [f"{where}: {told}" for told in (*_ask_axe(page), *moving(page))]
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(NARROW)
    found += [f"{where}, narrow and dark: {told}" for told in _ask_axe(page, LOOKS)]
    found += [] if looks.fits(page) else [f"{where}: wider than {NARROW['width']} px"]
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    return found


def _ask_axe(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    if not page.evaluate("'axe' in window"):
        page.evaluate(base.AXE_SCRIPT)
    violations = page.evaluate("(options) => axe.run(options).then((results) => results.violations)", options)
    return [
        f"{found['id']}, {found['help']}: {[node['html'][:160] for node in found['nodes'][:3]]}"
        for found in violations
    ]


def let_into_everything(name: str) -> None:
    """Make the user staff who manages users, because some pages are for them only."""
    user = get_user_model().objects.get(username=name)
    user.is_staff = True
    user.save()
    names = ("view_user", "add_user", "change_user")
    user.user_permissions.add(*auth.Permission.objects.filter(codename__in=names))


def test_no_page_is_forgotten() -> None:
    names = set(get_resolver("toolbelt.web.urls").reverse_dict)
    assert {name for name in names if isinstance(name, str)} == {*PAGES, *NO_PAGES}


@pytest.fixture
def eventful(demo: str) -> None:
    """Let there be something on each page, and let olive into all of them."""
    let_into_everything("olive")
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


@pytest.mark.usefixtures("eventful")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_for_everybody(open_page: OpensPage, part: int) -> None:
    page = open_page("/help/", **STILL)
    found = []
    for address in [address for addresses in PAGES.values() for address in addresses][part::PARTS]:
        page.goto(address)
        found += findings(page, address)
    assert found == []


@pytest.mark.usefixtures("eventful")
@pytest.mark.parametrize("name", STEPS)
def test_what_one_does_leaves_it_so(open_page: OpensPage, name: str) -> None:
    address, step = STEPS[name]
    page = open_page(address, expects="status of 422", **STILL)
    step(page)
    assert findings(page, name) == []


@pytest.mark.usefixtures("eventful")
def test_what_others_get_to_see_is_for_everybody(open_page: OpensPage) -> None:
    page = open_page("/login/", who=None, **STILL)
    found = findings(page, "/login/")
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("alert").wait_for()
    found += findings(page, "a wrong password")
    found += findings(open_page(OF_GIT, who="rosa", **STILL), "for one who may only look")
    found += findings(open_page("/nothing/", expects="status of 404", **STILL), "an error")
    assert found == []


def test_no_page_is_wider_than_its_window_whatever_things_are_called(open_page: OpensPage) -> None:
    let_into_everything("olive")
    long = "a_name_as_long_as_a_name_may_be_which_is_sixty_four_characters_x"
    tool = factories.tool(long, description="Longwords" * 40)
    key = f"{long[:-2]}_y"
    toolkit = factories.toolkit(key, tool, title="Titlewithoutspaces" * 6, policy="Policy" * 60)
    agent = factories.agent("An-agent-with-a-name-of-sixty-four-characters-which-is-the-most.")
    models.ToolkitSwitch.objects.create(agent=agent, toolkit=toolkit, on=True)
    calls.run(agent.key, long, {})
    of_agent = f"/agents/{agent.key}/?open=toolkit-{key}"
    page = open_page("/agents/", width=360)
    page.get_by_text("Menu", exact=True).click()
    wide = [] if looks.fits(page) else ["the menu"]
    addresses = (
        *(f"/agents/{agent.key}/{tail}" for tail in ("preview/", f"preview/?view=why&tool={long}")),
        *(
            f"/agents/{agent.key}/{tail}"
            for tail in ("sessions/", "history/", "settings/", "bulk/?set=reset")
        ),
        f"/compare/?a=kiosk&b={agent.key}",
        f"/toolkits/{key}/",
        f"/toolkits/{key}/edit/",
        f"/tools/{long}/",
        f"/tools/?q={long}",
        f"/matrix/?q={long[:20]}",
        f"/calls/?agent={agent.key}",
        "/agents/",
        "/",
        of_agent,
    )
    for address in addresses:
        page.goto(address)
        wide += [] if looks.fits(page) else [address]
    operating.switch(page, key).click()
    page.get_by_role("dialog").or_(operating.notice(page).locator(".toast")).first.wait_for()
    wide += [] if looks.fits(page) else ["a question"]
    for width in (600, 768, 960, 1100, 1320, 1440, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        wide += [] if looks.fits(page) else [f"{width} px"]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize(
    "address", [ACCESS, "/matrix/", "/toolkits/issues/edit/", "/compare/?a=kiosk&b=runner"]
)
def test_at_twice_the_size_all_of_it_is_there(open_page: OpensPage, address: str) -> None:
    page = open_page(address, width=720, device_scale_factor=2)
    assert looks.fits(page)
    out = page.evaluate(
        """() => {
            const scrolls = (element) => element && (
                ["auto", "scroll"].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement)
            );
            return [...document.querySelectorAll("main :is(button, a, input, select, textarea, summary)")]
                .filter((element) => element.checkVisibility() && !scrolls(element.parentElement))
                .filter((element) => {
                    const box = element.getBoundingClientRect();
                    return box.width > 1 && (box.left < 0 || box.right > innerWidth + 1);
                })
                .map((element) => element.outerHTML.slice(0, 120));
        }"""
    )
    assert out == []


@looks.with_scripts
def test_nothing_is_too_small_for_a_finger(open_page: OpensPage) -> None:
    let_into_everything("olive")
    page = open_page("/")
    small = []
    for address in SOME_OF_EACH_KIND:
        page.goto(address)
        small += [f"{address} {one}" for one in looks.too_small(page)]
    assert not small, "\n".join(small)


def test_without_motion_nothing_moves(open_page: OpensPage) -> None:
    """On every page, says `findings`; here, that it finds what moves."""
    page = open_page(OF_GIT)
    assert moving(page)
    page.emulate_media(reduced_motion="reduce")
    assert moving(page) == []


def moving(page: Page) -> list[str]:
    """Name what moves on the page, or would if something changed."""
    found: list[str] = page.evaluate(
        """() => {
            const lasts = (times) => times.split(",").some((time) => parseFloat(time) > 0);
            const moves = (style) =>
                (style.animationName !== "none" && lasts(style.animationDuration)) ||
                (style.transitionProperty !== "none" && lasts(style.transitionDuration)) ||
                style.scrollBehavior === "smooth";
            // One of each kind: to work out the style of all of them takes longer than the rest of the page.
            const kind = ({ localName, className, parentElement: over }) =>
                [localName, className, over?.localName, over?.className].join();
            const kinds = new Map([...document.querySelectorAll("*")].map((element) => [kind(element), element]));
            return [...kinds.values()].flatMap((element) =>
                [null, "::before", "::after"]
                    .filter((part) => moves(getComputedStyle(element, part)))
                    .map((part) => `${element.localName}.${element.className}${part ?? ""} moves`),
            );
        }"""
    )
    return found
