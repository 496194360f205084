"""Tests that an open page of calls says how many came in since."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.web import acting
from toolbelt.control.reports import usage
from toolbelt.web.calls import views as calls

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def look(browser: Client, **said: Any) -> Any:
    return browser.get("/calls/", said).context["page"]


def test_an_open_page_is_told_how_many_calls_came_in_behind_those_that_it_shows(reader: Client) -> None:
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


def test_a_page_without_calls_is_not_told_of_those_that_are_too_old_for_it(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 1)
    factories.call(days_ago=3)
    factories.call(days_ago=3)
    url = look(reader).news.url
    assert url == "/calls/?newer=0"
    assert "new call" not in acting.text(reader.get(url))


def test_an_open_page_that_looks_again_lets_no_calls_be_counted_but_the_new_ones(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.call()
    url = look(reader).news.url
    factories.call()
    monkeypatch.setattr(usage, "exceeds", pytest.fail)
    assert "1 new call" in acting.text(reader.get(url))


def test_what_can_have_no_new_calls_asks_for_none(reader: Client) -> None:
    newest = factories.call()
    yesterday = timezone.localdate() - dt.timedelta(days=1)
    assert look(reader, until=yesterday.isoformat()).news is None
    assert look(reader, older=newest.pk + 1).news is None
    assert look(reader, until=timezone.localdate().isoformat()).news is not None


def test_no_more_new_calls_are_counted_than_anyone_would_read(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_NEWS", 2)
    url = look(reader).news.url
    for _ in range(3):
        factories.call()
    assert "2 or more new calls" in acting.text(reader.get(url))


def test_who_may_not_see_calls_is_not_told_how_many_there_are(viewer: Client) -> None:
    assert viewer.get("/calls/", {"newer": "0"}).status_code == 403
