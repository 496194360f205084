"""Tests that users save the filters of lists as named, private views."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.test import Client

from tests import fast_fixtures
from tests.web import dashboard
from toolbelt import models
from toolbelt.control.people import saved_views
from toolbelt.web import urls  # noqa: F401 (it loads every list)
from toolbelt.web.kit.saved_views import FilteredList

LISTS = FilteredList.by_page
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
    return [name for name, _, _ in views(browser, address).views]


@pytest.mark.parametrize("page", FILTERS)
def test_the_filters_of_every_list_can_be_saved_and_shown_again(admin_client: Client, page: str) -> None:
    filtered = f"{LISTS[page].address()}?{FILTERS[page]}"
    html = dashboard.text(admin_client.get(filtered))
    assert f'action="/views/{page}/save/"' in html
    assert save(admin_client, "Mine", FILTERS[page], page).headers["Location"] == filtered
    html = dashboard.text(admin_client.get(filtered))
    assert f'<a href="{filtered.replace("&", "&amp;")}" aria-current="true">Mine</a>' in html
    assert "View Mine saved." in html
    assert f'<a href="{LISTS[page].address()}" aria-current="true">All</a>' in dashboard.text(
        admin_client.get(LISTS[page].address())
    )


def test_every_list_with_saved_views_is_tested() -> None:
    assert FILTERS.keys() == LISTS.keys()


def test_only_known_filters_are_saved_without_the_page_offset(viewer: Client) -> None:
    save(viewer, "Mine", "risk=writes&offset=50&next=https://example.com/&q=" + "x" * 300)
    assert views(viewer).views[0][1] == f"/tools/?q={200 * 'x'}&risk=writes"


def test_a_preset_period_is_saved_without_its_days(viewer: Client) -> None:
    save(viewer, "Week", "period=7d&since=2026-03-01&until=2026-03-07", "audit_log")
    save(viewer, "March", "period=custom&since=2026-03-01", "audit_log")
    shown = {name: url for name, url, _ in views(viewer, "/audit/").views}
    assert shown == {
        "Week": "/audit/?period=7d",
        "March": "/audit/?period=custom&since=2026-03-01",
    }


def test_a_view_of_the_same_name_is_replaced(viewer: Client) -> None:
    save(viewer, "Mine", "risk=writes")
    save(viewer, "Mine", "risk=destructive")
    assert [view[:2] for view in views(viewer).views] == [("Mine", "/tools/?risk=destructive")]


def test_a_view_is_deleted_and_the_list_stays_filtered(viewer: Client) -> None:
    save(viewer, "Mine", "risk=writes")
    assert ">Delete view<" in dashboard.text(viewer.get("/tools/?risk=writes"))
    response = viewer.post("/views/tools/delete/", {"name": "Mine", "query": "risk=writes"})
    assert (response.status_code, response.headers["Location"]) == (303, "/tools/?risk=writes")
    assert names(viewer) == []


def test_views_are_private_to_their_user(viewer: Client, operator: Client) -> None:
    save(viewer, "Mine", "risk=writes")
    assert names(operator) == []
    operator.post("/views/tools/delete/", {"name": "Mine", "query": ""})
    assert names(viewer) == ["Mine"]


@pytest.mark.parametrize(
    ("name", "query", "message"),
    [
        ("Mine", "", "There is nothing to save: choose filters first."),
        ("Mine", "unknown=1&offset=3", "There is nothing to save"),
        ("", "risk=writes", "Not saved: "),
        ("x" * 61, "risk=writes", "at most 60 characters"),
    ],
)
def test_an_invalid_view_is_rejected_with_the_reason(
    viewer: Client, name: str, query: str, message: str
) -> None:
    save(viewer, name, query)
    assert message in dashboard.text(viewer.get("/tools/"))
    assert not models.SavedView.objects.exists()


def test_the_number_of_views_per_list_is_limited(viewer: Client) -> None:
    for number in range(saved_views.MAX_VIEWS):
        save(viewer, f"View {number}", f"q={number}")
    save(viewer, "One more", "q=more")
    assert "which is the maximum. Delete one first." in dashboard.text(viewer.get("/tools/"))
    save(viewer, "View 3", "q=replaced")
    save(viewer, "Another list", "q=git", "toolkits")
    assert len(names(viewer)) == saved_views.MAX_VIEWS
    assert "/tools/?q=replaced" in {url for _, url, _ in views(viewer).views}
    assert names(viewer, "/toolkits/") == ["Another list"]


def test_views_of_an_unknown_list_are_not_found(viewer: Client) -> None:
    assert save(viewer, "Mine", "q=x", "secrets").status_code == 404


def test_a_list_filtered_with_htmx_offers_to_save_its_filters(viewer: Client) -> None:
    html = dashboard.text(viewer.get("/tools/?q=git", headers=dashboard.HTMX))
    assert '<div id="views" hx-swap-oob="innerHTML">' in html
    assert '<input type="hidden" name="query" value="q=git">' in html


def test_a_views_name_is_escaped(viewer: Client) -> None:
    save(viewer, "<b>Mine</b>", "q=git")
    html = dashboard.text(viewer.get("/tools/"))
    assert "&lt;b&gt;Mine&lt;/b&gt;" in html
    assert "<b>Mine" not in html


def test_query_count_does_not_grow_with_the_number_of_views(viewer: Client) -> None:
    viewer.get("/tools/")
    none = dashboard.count_queries(lambda: viewer.get("/tools/"))
    for number in range(5):
        save(viewer, f"View {number}", f"q={number}")
    viewer.get("/tools/")
    assert dashboard.count_queries(lambda: viewer.get("/tools/")) == none


def test_the_views_of_a_deleted_account_are_deleted(db: None) -> None:
    user: auth.User = get_user_model().objects.create_user("rosa")
    save(fast_fixtures.logged_in(user), "Mine", "q=git")
    assert models.SavedView.objects.exists()
    user.delete()
    assert not models.SavedView.objects.exists()
