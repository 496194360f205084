"""A bearer is authenticated in one query, and the use of tokens is written rarely and never by a request."""

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


def used() -> dt.datetime | None:
    return models.ApiToken.objects.get().last_used


def test_a_bearer_is_recognised_in_one_query_that_reads(text):
    with CaptureQueriesContext(connection) as asked:
        assert credentials.recognize(text) is not None
    [one] = asked.captured_queries
    assert one["sql"].startswith("SELECT")


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


def test_a_text_of_another_form_is_not_even_looked_up(text):
    with CaptureQueriesContext(connection) as asked:
        assert credentials.recognize(text[:-1]) is None
        assert credentials.recognize("tb_" + "0" * 57) is None
    assert len(asked) == 0


def test_the_prefix_alone_opens_nothing(text):
    letters = iter(text[3:11] + "0" * api_tokens.SECRET)
    other = api_tokens.make(lambda _: next(letters))
    assert api_tokens.prefix(other) == api_tokens.prefix(text)
    assert credentials.recognize(other) is None


def test_its_use_is_noted_later(text):
    before = timezone.now()
    credentials.recognize(text)
    assert used() is None
    credentials.write_uses()
    at = used()
    assert at is not None
    assert before <= at <= timezone.now()


def test_its_use_is_noted_some_minutes_apart(text):
    credentials.recognize(text)
    credentials.write_uses()
    for ago, is_noted in ((credentials.USE_INTERVAL / 2, False), (credentials.USE_INTERVAL * 2, True)):
        noted = timezone.now() - ago
        models.ApiToken.objects.update(last_used=noted)
        credentials.recognize(text)
        credentials.write_uses()
        assert (used() != noted) is is_noted


def test_what_was_noted_is_not_noted_again(text):
    credentials.recognize(text)
    credentials.write_uses()
    with CaptureQueriesContext(connection) as asked:
        credentials.write_uses()
    assert len(asked) == 0


def test_what_opens_nothing_is_no_use(text):
    models.ApiToken.objects.update(revoked=timezone.now())
    assert credentials.recognize(text) is None
    credentials.write_uses()
    assert used() is None
