"""Operators list sessions and change them."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from toolbelt import models
from toolbelt.control import undo
from toolbelt.control.agents import agents, sessions
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import meta_tools, surfaces


@pytest.fixture
def ada(stored, operator):
    agents.edit(operator, "ada", {"allowed_toolkits": ["reading", "pushing"]})


def load(toolkit: str, session: str = "s1", agent: str = "ada") -> None:
    answer = meta_tools.call(agent, "load_tools", {"toolkit": toolkit}, session, "r1")
    assert answer.content["status"] == "loaded"  # type: ignore[union-attr]


def test_sessions_are_listed_the_last_changed_first(ada, operator):
    agents.edit(operator, "bob", {"allowed_toolkits": ["pushing"]})
    load("reading", "s1")
    load("pushing", "s2")
    load("pushing", "b1", "bob")
    load("pushing", "s1")
    page = sessions.page()
    assert [(one.agent, one.session.key) for one in page.sessions] == [
        ("ada", "s1"),
        ("bob", "b1"),
        ("ada", "s2"),
    ]
    page = sessions.page("ada", offset=1, limit=1)
    assert ([one.session.key for one in page.sessions], page.total) == (["s2"], 2)
    kept = sessions.read("ada", "s1")
    assert [change.name for change in kept.session.changes] == ["reading", "pushing"]
    assert kept.created <= kept.changed


def test_an_evicted_session_begins_anew(ada, operator):
    load("reading")
    assert "git__status" in surfaces.ask("ada", "s1").because
    sessions.evict(operator.replace(reason="stuck"), "ada", "s1")
    assert "git__status" not in surfaces.ask("ada", "s1").because
    [entry] = queries.changes(action="session.evict").entries
    assert (entry.subject_kind, entry.subject_key, entry.key, entry.reason) == (
        "session",
        "ada",
        "s1",
        "stuck",
    )
    assert entry.before == {"loaded": ["reading"], "loadout": None}
    with pytest.raises(errors.Refused, match="cannot be undone"):
        undo.undo(operator, entry.id)


@pytest.mark.parametrize("session", ["s2", "a\0b", "", "x" * 300])
def test_a_session_that_is_not_there_is_said_so(ada, operator, session):
    for act in (lambda: sessions.read("ada", session), lambda: sessions.evict(operator, "ada", session)):
        with pytest.raises(errors.NotFound):
            act()
    for agent in ("adda", "a\0da"):
        with pytest.raises(errors.NotFound):
            sessions.read(agent, session)


def test_a_session_is_equipped_and_it_is_undone(ada, operator):
    done = sessions.equip(operator, "ada", "s1", "full", was="")
    assert sessions.read("ada", "s1").session.loadout == "full"
    assert sessions.equip(operator, "ada", "s1", "full").is_nothing
    with pytest.raises(errors.Stale):
        sessions.equip(operator, "ada", "s1", "minimal", was="")
    assert done.entry is not None
    undo.undo(operator, done.entry)
    assert sessions.read("ada", "s1").session.loadout == ""


def test_a_session_takes_the_loadouts_it_may(ada, operator):
    with pytest.raises(errors.Refused, match="Its session_loadouts are minimal"):
        sessions.equip(operator, "ada", "s1", "full", among=["minimal"])
    with pytest.raises(errors.NotFound, match="Did you mean minimal"):
        sessions.equip(operator, "ada", "s1", "minimall", among=["minimal"])
    assert not models.AgentSession.objects.exists()
    sessions.equip(operator, "ada", "s1", "MINIMAL", among=["minimal"])


def test_an_agent_takes_off_only_what_it_may_put_on(ada, operator):
    load("reading")
    sessions.equip(operator, "ada", "s1", "full")
    for loadout in ("", "minimal"):
        with pytest.raises(
            errors.Refused,
            match="may not replace the loadout full of session s1",
        ):
            sessions.equip(operator, "ada", "s1", loadout, among=["minimal"])
    with pytest.raises(errors.Refused, match="which has the loadout full"):
        sessions.evict(operator, "ada", "s1", among=[])
    held = sessions.read("ada", "s1").session
    assert (held.loadout, [change.name for change in held.changes]) == ("full", ["reading"])
    assert len(queries.changes(action="session.equip").entries) == 1
    assert not queries.changes(action="session.evict").entries
    sessions.equip(operator, "ada", "s1", "", among=["FULL"])
    sessions.evict(operator, "ada", "s1", among=[])


def test_what_an_agent_chose_counts_while_it_may_choose_it(ada, operator):
    everything = {"plugins": ["git"], "disabled": ["clock"]}
    belts.import_(operator, {"loadouts": [{"name": "most", **everything}]})

    def may(*names: str) -> None:
        entry = {"key": "ada", "allowed_toolkits": ["reading"], "session_loadouts": list(names)}
        belts.import_(operator, {"agents": [entry]})

    def has(session: str) -> tuple[bool, bool]:
        active = surfaces.ask("ada", session).because
        return "git__push" in active, "clock" in active

    may("most")
    assert has("s1") == (False, True)
    for session in ("chosen", "loaded", "confirmed"):
        sessions.equip(operator, "ada", session, "most", among=["most"])
    load("reading", "loaded")
    assert not sessions.equip(operator, "ada", "confirmed", "most").is_nothing
    sessions.equip(operator, "ada", "given", "most")
    assert sessions.equip(operator, "ada", "given", "most", among=["most"]).is_nothing
    may()
    assert [has(session) for session in ("given", "confirmed")] == [(True, False)] * 2
    assert [has(session) for session in ("chosen", "loaded")] == [(False, False)] * 2
    may("MOST")
    assert has("chosen") == (True, False)


def test_sessions_are_forgotten_by_their_age(ada):
    for session in ("old", "new"):
        load("reading", session)
    models.AgentSession.objects.filter(key="old").update(changed=timezone.now() - dt.timedelta(days=31))
    assert sessions.prune(dt.timedelta(days=30)) == 1
    assert [one.session.key for one in sessions.page().sessions] == ["new"]
    assert sessions.prune(dt.timedelta(days=30)) == 0
