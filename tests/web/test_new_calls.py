"""Tests that an open page of calls shows the number of new calls."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.web import dashboard
from toolbelt.control.reports import usage
from toolbelt.web.call_log import views as calls

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def open_page(browser: Client, **query: Any) -> Any:
    return browser.get("/calls/", query).context["page"]


def test_an_open_page_gets_the_number_of_new_calls(call_viewer: Client) -> None:
    def poll(news: Any) -> str:
        return dashboard.text(call_viewer.get(news.url))

    assert open_page(call_viewer).news.url == "/calls/?newer=0"
    factories.call()
    everything, of_ada = open_page(call_viewer).news, open_page(call_viewer, agent="ada").news
    assert "new call" not in poll(everything)
    factories.call()
    factories.call(agent="bob", outcome="tool-denied")
    assert "<strong>2 new calls</strong>" in poll(everything)
    assert "<strong>1 new call</strong>" in poll(of_ada)
    assert 'hx-get="/calls/?agent=ada"' in poll(of_ada)
    assert "<html" not in poll(everything)


def test_calls_before_the_displayed_period_are_not_counted_as_new(
    call_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 1)
    factories.call(days_ago=3)
    factories.call(days_ago=3)
    url = open_page(call_viewer).news.url
    assert url == "/calls/?newer=0"
    assert "new call" not in dashboard.text(call_viewer.get(url))


def test_polling_counts_only_the_new_calls(call_viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    factories.call()
    url = open_page(call_viewer).news.url
    factories.call()
    monkeypatch.setattr(usage, "exceeds", pytest.fail)
    assert "1 new call" in dashboard.text(call_viewer.get(url))


def test_past_periods_and_older_pages_do_not_poll(call_viewer: Client) -> None:
    newest = factories.call()
    yesterday = timezone.localdate() - dt.timedelta(days=1)
    asks: list[dict[str, Any]] = [
        {"until": yesterday},
        {"older": newest.pk + 1},
        {"until": timezone.localdate()},
    ]
    pages = [call_viewer.get("/calls/", query).content.decode() for query in asks]
    assert ['id="news"' in page for page in pages] == [False, False, True]


def test_the_number_of_new_calls_is_capped(call_viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_NEWS", 2)
    url = open_page(call_viewer).news.url
    for _ in range(3):
        factories.call()
    assert "2 or more new calls" in dashboard.text(call_viewer.get(url))


def test_the_number_of_new_calls_requires_permission(viewer: Client) -> None:
    assert viewer.get("/calls/", {"newer": "0"}).status_code == 403
