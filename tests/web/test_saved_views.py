"""Tests that people save the filters of lists under names, each for themselves."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.test import Client

from tests import fast_fixtures
from tests.web import acting
from toolbelt import models
from toolbelt.control.people import saved_views
from toolbelt.web import urls  # noqa: F401 (it loads every list)
from toolbelt.web.kit.saved_views import FilteredList

LISTS = FilteredList.every
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

# A filter of each list that has saved views.
FILTERS = {
    "agents": "kind=plan",
    "toolkits": "q=issue",
    "tools": "risk=destructive",
    "plugins": "q=github",
    "calls": "outcome=ok&period=7d",
    "audit_log": "via=api&period=yesterday",
}


def save(browser: Client, name: str, query: str, page: str = "tools") -> Any:
    return browser.post(f"/views/{page}/save/", {"name": name, "query": query})


def views(browser: Client, address: str = "/tools/") -> Any:
    return browser.get(address).context["page"].views


def names(browser: Client, address: str = "/tools/") -> list[str]:
    return [view.name for view in views(browser, address).views]


@pytest.mark.parametrize("page", FILTERS)
def test_the_filters_of_every_list_can_be_saved_and_shown_again(admin_client: Client, page: str) -> None:
    filtered = f"{LISTS[page].address()}?{FILTERS[page]}"
    html = acting.text(admin_client.get(filtered))
    assert f'action="/views/{page}/save/"' in html
    assert save(admin_client, "Mine", FILTERS[page], page).headers["Location"] == filtered
    html = acting.text(admin_client.get(filtered))
    assert f'<a href="{filtered.replace("&", "&amp;")}" aria-current="true">Mine</a>' in html
    assert "View Mine saved." in html
    assert f'<a href="{LISTS[page].address()}" aria-current="true">All</a>' in acting.text(
        admin_client.get(LISTS[page].address())
    )


def test_every_list_with_saved_views_is_tested() -> None:
    assert FILTERS.keys() == LISTS.keys()


def test_only_filters_that_the_list_has_are_saved_and_not_the_place_in_it(viewer: Client) -> None:
    save(viewer, "Mine", "risk=writes&offset=50&next=https://example.com/&q=" + "x" * 300)
    assert views(viewer).views[0].url == f"/tools/?q={200 * 'x'}&risk=writes"


def test_a_preset_is_saved_without_the_days_that_it_shows(viewer: Client) -> None:
    save(viewer, "Week", "period=7d&since=2026-03-01&until=2026-03-07", "audit_log")
    save(viewer, "March", "period=custom&since=2026-03-01", "audit_log")
    shown = {view.name: view.url for view in views(viewer, "/audit/").views}
    assert shown == {
        "Week": "/audit/?period=7d",
        "March": "/audit/?period=custom&since=2026-03-01",
    }


def test_a_view_of_the_same_name_is_replaced(viewer: Client) -> None:
    save(viewer, "Mine", "risk=writes")
    save(viewer, "Mine", "risk=destructive")
    assert [(view.name, view.url) for view in views(viewer).views] == [("Mine", "/tools/?risk=destructive")]


def test_a_view_is_deleted_and_the_list_stays_filtered(viewer: Client) -> None:
    save(viewer, "Mine", "risk=writes")
    assert ">Delete view<" in acting.text(viewer.get("/tools/?risk=writes"))
    answer = viewer.post("/views/tools/delete/", {"name": "Mine", "query": "risk=writes"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/tools/?risk=writes")
    assert names(viewer) == []


def test_nobody_sees_or_deletes_the_views_of_others(viewer: Client, operator: Client) -> None:
    save(viewer, "Mine", "risk=writes")
    assert names(operator) == []
    operator.post("/views/tools/delete/", {"name": "Mine", "query": ""})
    assert names(viewer) == ["Mine"]


@pytest.mark.parametrize(
    ("name", "query", "told"),
    [
        ("Mine", "", "There is nothing to save: choose filters first."),
        ("Mine", "unknown=1&offset=3", "There is nothing to save"),
        ("", "risk=writes", "Not saved: "),
        ("x" * 61, "risk=writes", "at most 60 characters"),
    ],
)
def test_what_cannot_be_saved_is_refused_with_the_reason(
    viewer: Client, name: str, query: str, told: str
) -> None:
    save(viewer, name, query)
    assert told in acting.text(viewer.get("/tools/"))
    assert not models.SavedView.objects.exists()


def test_a_person_saves_a_limited_number_of_views_of_each_list(viewer: Client) -> None:
    for number in range(saved_views.MAX_VIEWS):
        save(viewer, f"View {number}", f"q={number}")
    save(viewer, "One more", "q=more")
    assert "which is the maximum. Delete one first." in acting.text(viewer.get("/tools/"))
    save(viewer, "View 3", "q=replaced")
    save(viewer, "Another list", "q=git", "toolkits")
    assert len(names(viewer)) == saved_views.MAX_VIEWS
    assert "/tools/?q=replaced" in {view.url for view in views(viewer).views}
    assert names(viewer, "/toolkits/") == ["Another list"]


def test_views_of_an_unknown_list_are_not_found(viewer: Client) -> None:
    assert save(viewer, "Mine", "q=x", "secrets").status_code == 404


def test_a_list_that_is_narrowed_in_place_offers_to_save_what_it_shows(viewer: Client) -> None:
    html = acting.text(viewer.get("/tools/?q=git", headers=acting.HTMX))
    assert '<div id="views" hx-swap-oob="innerHTML">' in html
    assert '<input type="hidden" name="query" value="q=git">' in html


def test_the_name_of_a_view_is_only_text(viewer: Client) -> None:
    save(viewer, "<b>Mine</b>", "q=git")
    html = acting.text(viewer.get("/tools/"))
    assert "&lt;b&gt;Mine&lt;/b&gt;" in html
    assert "<b>Mine" not in html


def test_saved_views_cost_one_query_however_many_there_are(viewer: Client) -> None:
    viewer.get("/tools/")
    none = acting.queries(lambda: viewer.get("/tools/"))
    for number in range(5):
        save(viewer, f"View {number}", f"q={number}")
    viewer.get("/tools/")
    assert acting.queries(lambda: viewer.get("/tools/")) == none


def test_the_views_of_a_deleted_account_are_deleted(db: None) -> None:
    user: auth.User = get_user_model().objects.create_user("rosa")
    save(fast_fixtures.logged_in(user), "Mine", "q=git")
    assert models.SavedView.objects.exists()
    user.delete()
    assert not models.SavedView.objects.exists()
