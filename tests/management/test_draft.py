"""Tests that drafts are saved, shown, applied and discarded on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError

from tests.control.conftest import operator, stored
from tests.management import running
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.runtime import surfaces
from toolbelt.store import audit, snapshots

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")
WRITE = writing.by("olive", via="screen").replace(confirm=True)


def draft(*words: str) -> str:
    out, _, code = running.run("draft", *words)
    assert code == 0, out
    return out


@pytest.fixture
def off(tmp_path: Path) -> str:
    file = tmp_path / "belt.json"
    file.write_text(json.dumps({"agents": [{"key": "bob", "tools_config": {"reading": False}}]}))
    return str(file)


def key() -> str:
    return str(models.Draft.objects.get().pk)


def test_a_belt_is_saved_shown_proved_and_applied(off: str) -> None:
    assert "1 change" in draft("save", off, "--title", "Less")
    assert snapshots.find("bob", None).agent.switches == {"reading": True}

    assert "Less" in draft()
    assert "before: true" in draft("show", key())
    assert "no call was recorded" in running.run("prove", "--draft", key())[0]
    draft("apply", key(), "--confirm", "--reason", "Agreed")

    assert snapshots.find("bob", None).agent.switches == {"reading": False}
    assert [entry.reason for entry in audit.of_batch(models.Draft.objects.get().pk)] == ["Agreed"]
    assert draft() == "There are no drafts.\n"


def test_an_undo_is_saved(off: str) -> None:
    change = switches.flip(WRITE, "bob", "reading", False)

    draft("save", "--undo", str(change.entry))

    assert models.Draft.objects.get().title == "Turn on reading for bob"


def test_a_draft_is_discarded(off: str) -> None:
    draft("save", off)
    draft("discard", key())

    assert not models.Draft.objects.exists()


def test_what_has_to_be_confirmed_is_not_applied_without_it(off: str) -> None:
    entries.change(WRITE, "agent", "bob", {"protected": True})
    draft("save", off)

    with pytest.raises(CommandError, match="--confirm"):
        draft("apply", key())

    assert snapshots.find("bob", None).agent.switches == {"reading": True}


def test_a_draft_is_observed_reported_and_stopped(off: str) -> None:
    draft("save", off)
    with pytest.raises(CommandError):
        draft("report", key())
    draft("observe", key(), "--days", "7")
    draft("observe", key())
    with pytest.raises(CommandError):
        draft("observe", key(), "--days", "91")

    assert "no call was recorded" in draft("report", key())
    draft("stop", key())
    with pytest.raises(CommandError):
        draft("stop", key())


def test_a_draft_is_rolled_out_to_a_share_of_sessions_and_stopped(off: str) -> None:
    draft("save", off)
    before = surfaces.ask("bob").fingerprint
    for words in (["--percent", "0"], ["--agent", "ada"], ["--days", "91"]):
        with pytest.raises(CommandError):
            draft("rollout", key(), *words)
    out = draft("rollout", key(), "--percent", "100", "--agent", "bob", "--days", "7", "--reason", "Try")

    assert "100 % of the sessions of bob" in out
    assert "rolled out" in draft()
    assert surfaces.ask("bob", "s1").fingerprint != before
    assert surfaces.ask("bob").fingerprint == before
    why = ("why", "bob", "git__log")
    assert "rolled out" in running.run(*why, "--session", "s1")[0]
    assert "rolled out" not in running.run(*why)[0]
    assert "0 of 0 sessions with it" in draft("report", key())
    draft("stop", key())
    assert surfaces.ask("bob", "s1").fingerprint == before


def test_what_is_no_draft_is_an_error(off: str) -> None:
    for words in (
        ["save"],
        ["save", off, "--undo", "1"],
        ["save", off, "--days", "366"],
        ["apply", "nothing"],
    ):
        with pytest.raises(CommandError):
            draft(*words)

    assert not models.Draft.objects.exists()
