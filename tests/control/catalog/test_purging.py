"""Tests of purges: which conversations begin again, which calls are refused, and what operators see before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from tests.api.conftest import BELT, SETUP
from tests.web import dashboard
from toolbelt import models
from toolbelt.adapters.connection import protocol
from toolbelt.control import undo, writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import blocking, entries, purging
from toolbelt.control.config import belts
from toolbelt.core import effects, errors
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import calls, connection, credentials
from toolbelt.runtime.records import conversation_records, record_writer
from toolbelt.runtime.surfaces import appending, prepared_answers
from toolbelt.store import audit, call_records, conversations

pytestmark = pytest.mark.django_db

BEARER = credentials.Bearer(kind="agent", name="bob", prefix="", agent="bob")
CLAUDE, CHAT = ("anthropic", "claude-opus-5-5"), ("openai_chat", "a-model")
OLIVE = writing.by("olive", via="screen").replace(confirm=True)


@pytest.fixture(autouse=True)
def _stored(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    belts.import_(SETUP, BELT)

    def enqueue(record: Any) -> bool:
        if isinstance(record, conversations.Told):
            conversations.add_all([record])
        elif isinstance(record, Mapping):
            call_records.record_all([record])
        return True

    conversation_records._noted.clear()
    monkeypatch.setattr(record_writer, "has_room", lambda: True)
    monkeypatch.setattr(record_writer, "enqueue", enqueue)


class Program:
    """A program that keeps a conversation of bob, who has the toolkit ``reading``."""

    def __init__(self, session: str | None = None, provider: tuple[str, str] = CLAUDE) -> None:
        self.session, self.provider, self.token = session, provider, ""
        self.ask()

    def ask(self, **fields: Any) -> Any:
        form, model = self.provider
        conversation = appending.Conversation(self.token or None, **fields)
        request = prepared_answers.SurfaceRequest(
            RequestKey("bob", self.session), form=form, model=model, conversation=conversation
        )
        append = prepared_answers.answer(BEARER, request).append
        assert append is not None
        self.token = append["token"]
        return append

    def restart(self) -> str | None:
        """Return the code of the next request's restart; None if the conversation continues."""
        restart = self.ask()["restart"]
        return restart["code"] if restart else None

    def call(self, tool: str) -> str:
        return call(tool, self.token)


def call(tool: str, conversation: str = "") -> str:
    """Return the outcome of a call."""
    answer = connection.BlockingLocal("bob").call(protocol.Run.begin("s1"), tool, {}, conversation)
    return str(answer["code"]) if answer["is_error"] else "ok"


def purge(kind: purging.Kind, name: str) -> purging.PurgeChange:
    return purging.purge(OLIVE, kind, name)


@pytest.mark.parametrize("provider", [CLAUDE, CHAT])
def test_a_conversation_that_was_told_of_it_begins_again_once(provider: tuple[str, str]) -> None:
    program = Program(provider=provider)
    purge("tool", "kb__find")
    append = program.ask()
    assert append["restart"]["code"] == "purged"
    assert "tool kb__find" in append["restart"]["message"]
    assert append["prefix"] is not None
    assert program.restart() is None
    assert Program().restart() is None


def test_one_that_was_never_told_of_it_goes_on() -> None:
    program = Program()
    purge("tool", "kb__drop")
    purge("toolkit", "dropping")
    assert program.restart() is None


@pytest.mark.parametrize("provider", [CLAUDE, CHAT])
def test_one_that_is_told_of_it_after_the_purge_goes_on(provider: tuple[str, str]) -> None:
    program = Program(provider=provider)
    purge("tool", "kb__drop")
    switches.flip(OLIVE, "bob", "dropping", True)
    assert program.ask()["changes"]["added"] == ["kb__drop"]
    assert program.restart() is None
    purge("tool", "kb__drop")
    assert program.restart() == "purged"


def test_a_text_that_was_said_and_edited_since_is_remembered() -> None:
    program = Program()
    secret = "Look before you answer: the password is hunter2."
    entries.change(OLIVE, "toolkit", "reading", {"policy": secret})
    assert "hunter2" in str(program.ask()["messages"])
    entries.change(OLIVE, "toolkit", "reading", {"policy": BELT["toolkits"][0]["policy"]})
    program.ask()
    purge("toolkit", "reading")
    append = program.ask()
    assert append["restart"]["code"] == "purged"
    assert "hunter2" not in str(append["prefix"])


@pytest.mark.parametrize("provider", [CLAUDE, CHAT])
def test_what_came_and_went_in_the_conversation_is_remembered(provider: tuple[str, str]) -> None:
    program = Program(provider=provider)
    switches.flip(OLIVE, "bob", "dropping", True)
    assert program.ask()["changes"]["added"] == ["kb__drop"]
    switches.flip(OLIVE, "bob", "dropping", False)
    assert program.ask()["changes"]["removed"] == ["kb__drop"]
    assert program.call("kb__drop") == "tool-withdrawn"
    other = Program(provider=provider)
    purge("toolkit", "dropping")
    assert (program.restart(), other.restart()) == ("purged", None)
    switches.flip(OLIVE, "bob", "dropping", True)
    program.ask()
    switches.flip(OLIVE, "bob", "dropping", False)
    program.ask()
    purge("tool", "kb__drop")
    assert (program.restart(), other.restart()) == ("purged", None)


def test_what_a_compaction_may_have_kept_is_remembered() -> None:
    program = Program(provider=CHAT)
    switches.flip(OLIVE, "bob", "dropping", True)
    program.ask()
    switches.flip(OLIVE, "bob", "dropping", False)
    program.ask(compacted=True)
    purge("tool", "kb__drop")
    assert program.restart() == "purged"


def test_a_paused_turn_is_resumed_first() -> None:
    program = Program()
    purge("tool", "kb__find")
    assert program.ask(hold=True)["restart"] is None
    assert program.restart() == "purged"


def test_a_purged_tool_is_refused_at_once_where_it_was_told_and_nowhere_else() -> None:
    program = Program()
    purge("tool", "kb__find")
    assert program.call("kb__find") == "tool-withdrawn"
    assert program.call("kb__read") != "tool-withdrawn"
    program.ask()
    assert program.call("kb__find") != "tool-withdrawn"
    assert call("kb__find") != "tool-withdrawn"


def test_it_must_be_confirmed_and_the_live_conversations_are_counted() -> None:
    Program("s1")
    Program("s2", CHAT)
    Program()
    calls.run("bob", "clock", {}, session="s3")
    entries.change(OLIVE, "tool", "hidden", {"title": "Hidden"})
    with pytest.raises(errors.ConfirmationRequired) as raised:
        purging.purge(OLIVE.replace(confirm=False), "tool", "kb__find")
    assert raised.value.reasons[0] == "4 live conversations: 1 rewrites, 3 begin again."
    assert "ada, bob have it as it is now" in raised.value.reasons[1]
    assert not models.Purge.objects.exists()
    assert purging.plan("tool", "hidden").conversations == effects.NO_CONVERSATIONS


def test_only_conversations_that_were_told_of_it_are_counted() -> None:
    Program("s1")
    switches.flip(OLIVE, "bob", "dropping", True)
    for program in (later := Program("s2"), unnamed := Program()):
        program.ask()
    switches.flip(OLIVE, "bob", "dropping", False)
    for program in (later, unnamed):
        program.ask()
    early = Program("s3")
    assert purging.plan("tool", "kb__drop").conversations.restarted == 2
    switches.flip(OLIVE, "bob", "dropping", True)
    early.ask()
    assert purging.plan("tool", "kb__drop").conversations.restarted == 3
    assert purging.plan("toolkit", "dropping").conversations.restarted == 3
    assert purging.plan("tool", "clock").conversations.restarted == 4


def test_a_purge_is_in_the_audit_log_and_its_undo_spares_those_that_did_not_ask() -> None:
    asked, quiet = Program(), Program()
    change = purge("tool", "kb__find")
    assert asked.restart() == "purged"
    entry = audit.find(change.entry or 0)
    assert entry is not None
    assert (entry.action, entry.actor, entry.subject_key) == ("tool.purge", "olive", "kb__find")
    undo.undo(OLIVE, entry.id)
    assert (asked.restart(), quiet.restart()) == (None, None)
    again = purge("tool", "kb__find")
    assert (asked.restart(), quiet.restart()) == ("purged", "purged")
    purge("tool", "kb__find")
    with pytest.raises(errors.Stale):
        undo.undo(OLIVE, again.entry or 0)


def test_a_removed_toolkit_can_be_purged_and_a_mistyped_name_cannot() -> None:
    switches.flip(OLIVE, "bob", "dropping", True)
    program = Program()
    switches.flip(OLIVE, "bob", "dropping", None)
    switches.flip(OLIVE, "ada", "dropping", None)
    entries.remove(OLIVE, "toolkit", "dropping")
    assert purging.find("dropping") == ("toolkit", "dropping")
    assert purge("toolkit", "dropping").purge.agents == ()
    assert program.restart() == "purged"
    for name in ("droping", "toolkit:droping", "plugin:kb"):
        with pytest.raises(errors.NotFound):
            purging.find(name)


def test_a_start_is_stored_once_and_goes_with_the_last_conversation() -> None:
    Program("s1")
    Program("s2")
    assert models.Start.objects.count() == 1
    assert "tool kb__find" in models.Start.objects.get().names
    models.Told.objects.update(seen="2020-01-01T00:00Z")
    Program("s3", CHAT)
    assert models.Start.objects.count() == 1
    models.Agent.objects.get(key="bob").delete()
    assert not models.Start.objects.exists()


def test_the_live_conversations_of_a_block_are_counted_before_and_after_it(admin_client: Client) -> None:
    Program("s1")
    Program("s2", CHAT)
    calls.run("bob", "clock", {}, session="s3")
    page = dashboard.text(admin_client.get("/tools/kb__find/"))
    sentence = "3 live conversations: 1 continues, 1 continues in words, 1 rewrites"
    assert f"A block concerns {sentence}." in page
    assert "A block concerns" not in dashboard.text(admin_client.get("/tools/kb__drop/"))
    change = blocking.set_blocked(OLIVE, "tool", "kb__find", True)
    assert change.conversations == (1, 1, 1, 0)
    assert "A block concerns" not in dashboard.text(admin_client.get("/tools/kb__find/"))
    back = admin_client.post("/tools/kb__find/block/", {"on": "false", "was": "true"}, follow=True)
    assert sentence in dashboard.text(back)
    for path in ("/toolkits/reading/", "/plugins/kb/"):
        assert f"A block concerns {sentence}." in dashboard.text(admin_client.get(path)), path
