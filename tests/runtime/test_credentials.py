"""Tests that a token is authenticated in one query, and that its use is written rarely and never by a request."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests import factories
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import tokens
from toolbelt.core import api_tokens
from toolbelt.runtime import credentials

SETUP = writing.by("setup", via="command")


@pytest.fixture
def text(db: None) -> str:
    factories.agent("ada")
    credentials.write_uses()
    return tokens.issue(SETUP, agent="ada").text


def last_used_at() -> dt.datetime | None:
    return models.ApiToken.objects.get().last_used


def test_a_token_is_authenticated_in_one_reading_query(text):
    with CaptureQueriesContext(connection) as queries:
        assert credentials.recognize(text) is not None
    [query] = queries.captured_queries
    assert query["sql"].startswith("SELECT")


def test_only_the_first_use_of_a_token_is_written_immediately(text, monkeypatch):
    first_use = threading.Event()
    monkeypatch.setattr(credentials, "_first_use", first_use)
    credentials.recognize(text)
    assert first_use.is_set()
    first_use.clear()
    credentials.recognize(text)
    credentials.write_uses()
    credentials.recognize(text)
    assert not first_use.is_set()


def test_a_malformed_token_is_not_looked_up(text):
    with CaptureQueriesContext(connection) as queries:
        assert credentials.recognize(text[:-1]) is None
        assert credentials.recognize("tb_" + "0" * 57) is None
    assert len(queries) == 0


def test_a_token_with_the_right_prefix_and_a_wrong_secret_is_refused(text):
    letters = iter(text[3:11] + "0" * api_tokens.SECRET)
    other = api_tokens.make(lambda _: next(letters))
    assert api_tokens.prefix(other) == api_tokens.prefix(text)
    assert credentials.recognize(other) is None


def test_the_use_of_a_token_is_written_later(text):
    before = timezone.now()
    credentials.recognize(text)
    assert last_used_at() is None
    credentials.write_uses()
    at = last_used_at()
    assert at is not None
    assert before <= at <= timezone.now()


def test_the_use_of_a_token_is_written_at_most_once_per_interval(text):
    credentials.recognize(text)
    credentials.write_uses()
    for ago, is_noted in ((credentials.USE_INTERVAL / 2, False), (credentials.USE_INTERVAL * 2, True)):
        noted = timezone.now() - ago
        models.ApiToken.objects.update(last_used=noted)
        credentials.recognize(text)
        credentials.write_uses()
        assert (last_used_at() != noted) is is_noted


def test_a_written_use_is_not_written_again(text):
    credentials.recognize(text)
    credentials.write_uses()
    with CaptureQueriesContext(connection) as queries:
        credentials.write_uses()
    assert len(queries) == 0


def test_a_refused_token_is_not_recorded_as_used(text):
    models.ApiToken.objects.update(revoked=timezone.now())
    assert credentials.recognize(text) is None
    credentials.write_uses()
    assert last_used_at() is None
