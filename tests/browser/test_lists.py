"""Is each list narrowed and sorted by its filters, and the address says how?"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt import models

pytestmark = pytest.mark.browser


@looks.in_each
def test_agents(open_page: OpensPage) -> None:
    page = open_page("/agents/")
    page.get_by_label("Sort by").select_option("-tools")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator("tbody tr").first).to_contain_text("omni")
    page.get_by_label("Kind").select_option("plan")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("kind=plan"))
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)


@looks.in_each
def test_tools(open_page: OpensPage) -> None:
    page = open_page("/tools/")
    page.get_by_label("Plugin").select_option("git")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator("#matches")).to_contain_text("12")
    expect(page.get_by_role("link", name="git_commit")).to_be_visible()
    page.get_by_label("Risk").select_option("read-only")
    operating.save(page.locator("#filter"), "Apply")
    expect(page).to_have_url(re.compile("plugin=git.*risk=read-only|risk=read-only.*plugin=git"))
    expect(page.get_by_role("link", name="git_commit")).to_have_count(0)
    page.get_by_role("searchbox").fill("git_status")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="git_status").click()
    expect(page.get_by_role("heading", name="Which agents have it")).to_be_visible()


@looks.in_each
def test_toolkits(open_page: OpensPage) -> None:
    page = open_page("/toolkits/?q=git")
    page.get_by_role("radio", name="Not in use").check(force=True)
    operating.save(page.locator("#filter"), "Apply")
    expect(page).to_have_url(re.compile("show=unused"))
    expect(page.get_by_role("link", name="Local git")).to_have_count(0)
    page.get_by_role("searchbox").fill("no such thing")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.get_by_role("heading", name="No toolkit fits")).to_be_visible()


@looks.in_each
def test_loadouts_lead_where_one_clicks(open_page: OpensPage) -> None:
    page = open_page("/loadouts/")
    line = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="secure-review", exact=True))
    line.get_by_text("A developer's view").click(force=True)  # its name lies over all of it
    expect(page).to_have_url(re.compile("/loadouts/secure-review/$"))
    page.go_back()
    line.get_by_role("link", name="developer").click()
    expect(page).to_have_url(re.compile("/loadouts/developer/$"))
    page.go_back()
    page.get_by_role("heading", name="Loadouts").click()
    expect(page).to_have_url(re.compile("/loadouts/$"))


@looks.in_each
def test_plugins(open_page: OpensPage) -> None:
    page = open_page("/plugins/")
    page.get_by_role("searchbox").fill("github")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator("li.plugin")).to_have_count(2)
    expect(page).to_have_url(re.compile("q=github"))


@looks.in_each
def test_calls(open_page: OpensPage) -> None:
    for agent, outcome in (("kiosk", "ok"), ("kiosk", "tool-not-active"), ("runner", "ok")):
        models.CallRecord.objects.create(agent=agent, tool="wikipedia", outcome=outcome, duration_ms=40)
    page = open_page("/calls/")
    expect(page.locator(".call")).to_have_count(3)
    page.get_by_label("Agent").select_option("kiosk")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator(".call")).to_have_count(2)
    page.get_by_label("Outcome").select_option("tool-not-active")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator(".call")).to_have_count(1)
    expect(page).to_have_url(re.compile("agent=kiosk.*outcome=tool-not-active"))


@looks.in_each
def test_the_order_of_toolkits_is_changed(open_page: OpensPage) -> None:
    page = open_page("/toolkits/issues/")
    place = page.get_by_text("Its section is ")
    before = place.inner_text()
    page.get_by_role("button", name=re.compile("^Move issues behind ")).click()
    expect(operating.notice(page)).to_contain_text("issues")
    expect(place).not_to_have_text(before)
    operating.undo(page)
    expect(place).to_have_text(before)
