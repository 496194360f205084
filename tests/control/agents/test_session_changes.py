"""Tests that operators can list, change and evict sessions."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from toolbelt import models
from toolbelt.control import undo
from toolbelt.control.agents import agents, session_changes
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import surfaces
from toolbelt.runtime.calls import own_tools


@pytest.fixture
def ada(stored, operator):
    agents.edit(operator, "ada", {"allowed_toolkits": ["reading", "pushing"]})


def load(toolkit: str, session: str = "s1", agent: str = "ada") -> None:
    answer = own_tools.call(RequestKey(agent, session, "r1"), "load_tools", {"toolkit": toolkit})
    assert answer.content["status"] == "loaded"  # type: ignore[union-attr]


def test_sessions_are_listed_with_the_last_changed_first(ada, operator):
    agents.edit(operator, "bob", {"allowed_toolkits": ["pushing"]})
    load("reading", "s1")
    load("pushing", "s2")
    load("pushing", "b1", "bob")
    load("pushing", "s1")
    page = session_changes.page()
    assert [(listed.agent, listed.session.key) for listed in page.sessions] == [
        ("ada", "s1"),
        ("bob", "b1"),
        ("ada", "s2"),
    ]
    page = session_changes.page("ada", offset=1, limit=1)
    assert ([listed.session.key for listed in page.sessions], page.total) == (["s2"], 2)
    read = session_changes.read("ada", "s1")
    assert [change.name for change in read.session.changes] == ["reading", "pushing"]
    assert read.created <= read.changed


def test_an_evicted_session_loses_its_loads(ada, operator):
    load("reading")
    assert "git__status" in surfaces.ask("ada", "s1").because
    session_changes.evict(operator.replace(reason="stuck"), "ada", "s1")
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
def test_an_unknown_session_or_agent_is_not_found(ada, operator, session):
    for access in (
        lambda: session_changes.read("ada", session),
        lambda: session_changes.evict(operator, "ada", session),
    ):
        with pytest.raises(errors.NotFound):
            access()
    for agent in ("adda", "a\0da"):
        with pytest.raises(errors.NotFound):
            session_changes.read(agent, session)


def test_equipping_a_session_can_be_undone(ada, operator):
    change = session_changes.equip(operator, "ada", "s1", "full", was="")
    assert session_changes.read("ada", "s1").session.loadout == "full"
    assert session_changes.equip(operator, "ada", "s1", "full").is_nothing
    with pytest.raises(errors.Stale):
        session_changes.equip(operator, "ada", "s1", "minimal", was="")
    assert change.entry is not None
    undo.undo(operator, change.entry)
    assert session_changes.read("ada", "s1").session.loadout == ""


def test_a_session_accepts_only_its_allowed_loadouts(ada, operator):
    with pytest.raises(errors.Refused, match="Its session_loadouts are minimal"):
        session_changes.equip(operator, "ada", "s1", "full", among=["minimal"])
    with pytest.raises(errors.NotFound, match="Did you mean minimal"):
        session_changes.equip(operator, "ada", "s1", "minimall", among=["minimal"])
    assert not models.AgentSession.objects.exists()
    session_changes.equip(operator, "ada", "s1", "MINIMAL", among=["minimal"])


def test_an_agent_can_only_replace_loadouts_that_it_may_choose(ada, operator):
    load("reading")
    session_changes.equip(operator, "ada", "s1", "full")
    for loadout in ("", "minimal"):
        with pytest.raises(
            errors.Refused,
            match="may not replace the loadout full of session s1",
        ):
            session_changes.equip(operator, "ada", "s1", loadout, among=["minimal"])
    with pytest.raises(errors.Refused, match="which has the loadout full"):
        session_changes.evict(operator, "ada", "s1", among=[])
    session = session_changes.read("ada", "s1").session
    assert (session.loadout, [change.name for change in session.changes]) == ("full", ["reading"])
    assert len(queries.changes(action="session.equip").entries) == 1
    assert not queries.changes(action="session.evict").entries
    session_changes.equip(operator, "ada", "s1", "", among=["FULL"])
    session_changes.evict(operator, "ada", "s1", among=[])


def test_a_loadout_an_agent_chose_applies_while_it_is_allowed(ada, operator):
    everything = {"plugins": ["git"], "disabled": ["clock"]}
    belts.import_(operator, {"loadouts": [{"name": "most", **everything}]})

    def allow(*names: str) -> None:
        entry = {"key": "ada", "allowed_toolkits": ["reading"], "session_loadouts": list(names)}
        belts.import_(operator, {"agents": [entry]})

    def active_in(session: str) -> tuple[bool, bool]:
        active = surfaces.ask("ada", session).because
        return "git__push" in active, "clock" in active

    allow("most")
    assert active_in("s1") == (False, True)
    for session in ("chosen", "loaded", "confirmed"):
        session_changes.equip(operator, "ada", session, "most", among=["most"])
    load("reading", "loaded")
    assert not session_changes.equip(operator, "ada", "confirmed", "most").is_nothing
    session_changes.equip(operator, "ada", "given", "most")
    assert session_changes.equip(operator, "ada", "given", "most", among=["most"]).is_nothing
    allow()
    assert [active_in(session) for session in ("given", "confirmed")] == [(True, False)] * 2
    assert [active_in(session) for session in ("chosen", "loaded")] == [(False, False)] * 2
    allow("MOST")
    assert active_in("chosen") == (True, False)


def test_old_sessions_are_pruned(ada):
    for session in ("old", "new"):
        load("reading", session)
    models.AgentSession.objects.filter(key="old").update(changed=timezone.now() - dt.timedelta(days=31))
    assert session_changes.prune(dt.timedelta(days=30)) == 1
    assert [listed.session.key for listed in session_changes.page().sessions] == ["new"]
    assert session_changes.prune(dt.timedelta(days=30)) == 0
