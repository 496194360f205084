"""Tests that an open page of calls shows the number of new calls."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.web import acting
from toolbelt.control.reports import usage
from toolbelt.web.calls import view_model as calls

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def look(browser: Client, **said: Any) -> Any:
    return browser.get("/calls/", said).context["page"]


def test_an_open_page_gets_the_number_of_new_calls(reader: Client) -> None:
    def told(news: Any) -> str:
        return acting.text(reader.get(news.url))

    assert look(reader).news.url == "/calls/?newer=0"
    factories.call()
    everything, of_ada = look(reader).news, look(reader, agent="ada").news
    assert "new call" not in told(everything)
    factories.call()
    factories.call(agent="bob", outcome="tool-denied")
    assert "<strong>2 new calls</strong>" in told(everything)
    assert "<strong>1 new call</strong>" in told(of_ada)
    assert 'hx-get="/calls/?agent=ada"' in told(of_ada)
    assert "<html" not in told(everything)


def test_calls_before_the_displayed_period_are_not_counted_as_new(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 1)
    factories.call(days_ago=3)
    factories.call(days_ago=3)
    url = look(reader).news.url
    assert url == "/calls/?newer=0"
    assert "new call" not in acting.text(reader.get(url))


def test_polling_counts_only_the_new_calls(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    factories.call()
    url = look(reader).news.url
    factories.call()
    monkeypatch.setattr(usage, "exceeds", pytest.fail)
    assert "1 new call" in acting.text(reader.get(url))


def test_past_periods_and_older_pages_do_not_poll(reader: Client) -> None:
    newest = factories.call()
    yesterday = timezone.localdate() - dt.timedelta(days=1)
    assert look(reader, until=yesterday.isoformat()).news is None
    assert look(reader, older=newest.pk + 1).news is None
    assert look(reader, until=timezone.localdate().isoformat()).news is not None


def test_the_number_of_new_calls_is_capped(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_NEWS", 2)
    url = look(reader).news.url
    for _ in range(3):
        factories.call()
    assert "2 or more new calls" in acting.text(reader.get(url))


def test_the_number_of_new_calls_requires_permission(viewer: Client) -> None:
    assert viewer.get("/calls/", {"newer": "0"}).status_code == 403
