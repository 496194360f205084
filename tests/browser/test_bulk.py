"""Is what a list shows, or what is ticked, set alike after a look at what it would do, and undone as one?"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


def answer(page: Page, asked: str, button: str) -> None:
    """See the question that is asked, and say yes to it."""
    expect(operating.question(page)).to_contain_text(asked)
    assert looks.complaints(page) == []
    operating.question(page).get_by_role("button", name=button).click()


@looks.in_each
def test_all_that_the_access_page_shows(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=git_st")
    page.get_by_text("All shown").click()
    page.locator(".bulk-menu button[value=tools-false]").click()
    answer(page, "Turn off ", "Turn off: ")
    expect(operating.notice(page)).to_contain_text("for runner: off.")
    assert snapshots.find("runner", None).agent.overrides["git__git_status"] is False
    operating.undo(page)
    assert "git__git_status" not in snapshots.find("runner", None).agent.overrides


@looks.in_each
def test_the_tools_of_a_list_for_agents_that_are_ticked(open_page: OpensPage) -> None:
    page = open_page("/tools/?q=git_status")
    page.get_by_text("For which agents").click()
    page.get_by_role("checkbox", name="runner").check()
    page.locator(".bulk button[value=tools-false]").click()
    answer(page, "Turn off git__git_status for runner?", "Turn off: 1 change")
    expect(operating.notice(page)).to_contain_text("1 change for runner: off.")
    assert snapshots.find("runner", None).agent.overrides["git__git_status"] is False
    operating.undo(page)
    assert "git__git_status" not in snapshots.find("runner", None).agent.overrides


@looks.in_each
def test_a_toolkit_for_the_agents_of_a_list(open_page: OpensPage) -> None:
    page = open_page("/agents/?q=runner")
    page.locator(".bulk select").select_option("local_git")
    page.locator(".bulk button[value=toolkits-false]").click()
    answer(page, "Turn off local_git for runner?", "Turn off: 1 change")
    expect(operating.notice(page)).to_contain_text("1 change for runner: off.")
    assert snapshots.find("runner", None).agent.switches["local_git"] is False


@looks.in_each
def test_a_toolkit_for_many_agents_from_its_own_page(open_page: OpensPage) -> None:
    page = open_page("/toolkits/local_git/")
    page.get_by_text("Switch it for many agents").click()
    for name in ("runner", "assistant"):
        page.get_by_role("checkbox", name=name, exact=True).check(force=True)
    page.locator(".many").get_by_role("button", name="Turn off").click()
    answer(page, "Turn off local_git for 2 agents?", "Turn off: ")
    expect(operating.notice(page)).to_contain_text("off.")
    for name in ("runner", "assistant"):
        assert snapshots.find(name, None).agent.switches["local_git"] is False
    operating.undo(page)
    assert snapshots.find("runner", None).agent.switches["local_git"] is True
