"""Tests of what is recorded of conversations, and of the live ones that operators see before a change."""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.api.conftest import BELT, SETUP
from tests.web import dashboard
from toolbelt import models
from toolbelt.control import dry_runs, impacts, writing
from toolbelt.control.access import bulk, switches
from toolbelt.control.agents import agents
from toolbelt.control.config import belts
from toolbelt.control.reports import told_conversations
from toolbelt.core import effects
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import calls, credentials
from toolbelt.runtime.records import conversation_records, record_writer
from toolbelt.runtime.surfaces import appending, prepared_answers
from toolbelt.store import call_records, clock, conversations

pytestmark = pytest.mark.django_db

BEARER = credentials.Bearer(kind="agent", name="ada", prefix="", agent="ada")
CLAUDE, WORDS = ("anthropic", "claude-opus-5-5"), ("openai_chat", "a-model")


@pytest.fixture(autouse=True)
def records(db: None, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Store an agent, and return the records of a server, each of which is written at once."""
    belts.import_(SETUP, BELT)
    records: list[Any] = []

    def enqueue(record: Any) -> bool:
        if isinstance(record, conversations.Told):
            records.append(record)
            conversations.add_all([record])
        elif isinstance(record, Mapping):
            call_records.record_all([record])
        return True

    conversation_records._noted.clear()
    monkeypatch.setattr(record_writer, "has_room", lambda: True)
    monkeypatch.setattr(record_writer, "enqueue", enqueue)
    return records


def ask(session: str | None, token: str | None, provider: tuple[str, str] = CLAUDE) -> str:
    """Ask for what a conversation must be told, and return its token."""
    form, model = provider
    request = prepared_answers.SurfaceRequest(
        RequestKey("ada", session), form=form, model=model, conversation=appending.Conversation(token)
    )
    append = prepared_answers.answer(BEARER, request).append
    assert append is not None
    return str(append["token"])


def effect(key: str = "reading", on: bool = True) -> effects.Conversations:
    change = dry_runs.run(SETUP, lambda write: switches.flip(write, "ada", key, on), agent="ada").change
    assert change.effect is not None
    assert change.effect.conversations is not None
    return change.effect.conversations


def test_a_conversation_that_is_told_nothing_is_noted_once(records: list[Any]):
    token = ask("s1", None)
    for _ in range(5):
        assert ask("s1", token) == token
    assert [record.parent for record in records] == [""]


def test_what_a_conversation_was_told_is_shown_with_who_changed_it():
    token = ask("s1", None)
    switches.flip(writing.by("olive", via="api"), "ada", "reading", True)
    agents.create(writing.by("oscar", via="api"), "eve")
    token = ask("s1", token)
    ask("s1", token)
    (one,) = told_conversations.of("ada")
    assert (one.stored.session, one.stored.way) == ("s1", "append")
    later, begun = one.entries
    assert later.told.changes["added"] == ["kb__find", "kb__read"]
    assert later.by == ("olive",)
    assert (begun.told.changes, begun.by, begun.told.parent) == ({}, (), "")


def test_forks_are_listed_beside_each_other():
    begun = ask("s1", None)
    switches.flip(SETUP, "ada", "reading", True)
    ask("s1", begun)
    switches.override(SETUP, "ada", "kb__read", False)
    ask("s1", begun)
    (one,) = told_conversations.of("ada")
    assert [len(entry.told.changes.get("added", ())) for entry in one.entries] in ([2, 1, 0], [1, 2, 0])


def test_live_conversations_are_counted_by_what_happens_to_them():
    assert effect().sentence == "no live conversations"
    ask("s1", None)
    ask("s2", None, WORDS)
    ask(None, None)
    calls.run("ada", "list_toolkits", {}, session="s3")
    calls.run("ada", "list_toolkits", {}, session="s1")
    assert effect() == (2, 1, 1, 0)
    assert effect().sentence == "4 live conversations: 2 continue, 1 continues in words, 1 rewrites"
    assert bulk.plan(["ada", "bob"], ["reading"], True).conversations == (2, 1, 1, 0)


def test_an_older_point_and_an_hour_later_count_no_more():
    begun = ask(None, None)
    switches.flip(SETUP, "ada", "reading", True)
    ask(None, begun)
    assert effect(on=False) == (1, 0, 0, 0)
    with clock.stopped(timezone.now() + impacts.LIVE * 2):
        assert effect(on=False) == (0, 0, 0, 0)


def test_what_was_not_seen_for_long_is_forgotten(settings: Any):
    settings.TOOLBELT_CONVERSATIONS_DAYS = 3
    ask("s1", None)
    models.Told.objects.update(seen=timezone.now() - dt.timedelta(days=4))
    ask("s2", None)
    assert list(models.Told.objects.values_list("session", flat=True)) == ["s2"]
    models.Agent.objects.get(key="ada").delete()
    assert not models.Told.objects.exists()


@pytest.mark.parametrize(("days", "entries"), [((), "0 records"), (("--days", "2"), "1 record")])
def test_a_command_deletes_what_is_old(days: tuple[str, ...], entries: str):
    ask("s1", None)
    models.Told.objects.update(seen=timezone.now() - dt.timedelta(days=3))
    out = io.StringIO()
    call_command("prune_conversations", *days, stdout=out)
    assert out.getvalue() == f"Deleted {entries}.\n"
    with pytest.raises(CommandError, match="0 or more"):
        call_command("prune_conversations", "--days", "-1")


def test_the_sessions_page_shows_the_badge_and_what_was_told(admin_client: Client):
    token = ask("s1", None)
    switches.flip(SETUP, "ada", "reading", True)
    ask("s1", token)
    html = dashboard.text(admin_client.get("/agents/ada/sessions/"))
    assert "appends" in html
    assert "1 live conversation: 1 continues." in html
    assert "may call kb__find, kb__read" in html
    assert re.search(r"may call kb__find, kb__read; [^<]*</?[^>]*>~\d+ tokens", html) is not None
    for tab in ("", "preview/", "history/", "connect/", "settings/"):
        head = dashboard.text(admin_client.get(f"/agents/ada/{tab}"))
        assert re.search(r'class="mark accent"[^>]*>appends<', head), tab
        assert ">rewrites<" not in head
    calls.run("ada", "list_toolkits", {}, session="s3")
    assert ">rewrites<" in dashboard.text(admin_client.get("/agents/ada/"))
