"""Tests that a draft makes nothing, and that applying it makes exactly the change that was seen, or nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from tests.factories import call as recorded
from toolbelt import models
from toolbelt.control import drafts, undo, writing
from toolbelt.control.access import bulk, switches
from toolbelt.control.agents import agents, copying
from toolbelt.control.catalog import blocking, entries, ordering
from toolbelt.control.config import belt_plans, belts
from toolbelt.control.people import rights, roles
from toolbelt.control.servers import decisions
from toolbelt.core import errors, tool_versions
from toolbelt.store import audit, clock, snapshots
from toolbelt.store import drafts as rows

WRITE = writing.by("olive", via="screen")
Act = Callable[[writing.Write], object]
NOW = dt.datetime(2026, 11, 29, 12, 0, tzinfo=dt.UTC)
RULE = {"key": "no-push", "effect": "deny", "tools": ["git__push"]}


def flip(on: bool | None = False, key: str = "reading", agent: str = "bob") -> Act:
    return lambda write: switches.flip(write, agent, key, on)


def import_(document: dict[str, Any]) -> Act:
    return lambda write: belt_plans.apply(write, document)


def approve(write: writing.Write) -> object:
    tool = snapshots.catalog().tools["git__log"]
    return decisions.approve(write, {"git__log": tool_versions.shown_version(tool)})


def reject(write: writing.Write) -> object:
    tool = snapshots.catalog().tools["git__log"]
    return decisions.reject(write, {"git__log": tool_versions.shown_version(tool)})


def copy(write: writing.Write) -> object:
    plan = copying.plan("bob", "ada", None)
    return copying.copy(write, "bob", "ada", {row.id for row in plan.rows}, seen=plan.seen)


def undo_last(write: writing.Write) -> object:
    return undo.undo(write, audit.newest_id())


def many(write: writing.Write) -> object:
    return bulk.apply(write, bulk.plan(["ada", "bob"], ["pushing", "verbose"], False).seen, False)


CHANGES: dict[str, Act] = {
    "a switch": flip(),
    "a switch with an end": lambda write: switches.flip(
        write, "ada", "pushing", True, ends=NOW + dt.timedelta(hours=1)
    ),
    "an override": lambda write: switches.override(write, "ada", "git__push", True),
    "many at once": many,
    "a toolkit": lambda write: entries.create(write, "toolkit", {"key": "time", "members": ["clock"]}),
    "members": lambda write: entries.change(write, "toolkit", "reading", {"members": ["git__log"]}),
    "a removal": lambda write: entries.remove(write, "toolkit", "verbose"),
    "a loadout, and who has it": lambda write: (
        entries.create(write, "loadout", {"name": "small", "plugins": ["git"]}),
        agents.equip(write, "ada", "small"),
    ),
    "a budget": lambda write: entries.change(write, "agent", "ada", {"budget": {"max_tools": 9}}),
    "a block": lambda write: blocking.set_blocked(write, "tool", "git__log", True),
    "a rule": lambda write: entries.create(write, "gate_rule", RULE),
    "an order": lambda write: ordering.set_order(write, "toolkit", ["verbose", "reading", "pushing"]),
    "a copy": copy,
    "an archived agent": lambda write: agents.archive(write, "bob", True),
    "a belt": import_(
        {
            "toolkits": [{"key": "time", "members": ["clock"]}],
            "agents": [
                {"key": "cyn", "tools_config": {"time": True}},
                {"key": "ada", "allowed_toolkits": ["time"]},
            ],
        }
    ),
    "a loadout before the one that it extends": import_(
        {"loadouts": [{"name": "child", "parent": "base"}, {"name": "base", "plugins": ["git"]}]}
    ),
    "an approval": approve,
    "a rejection": reject,
}


@pytest.fixture
def reviewed(stored: None) -> None:
    """Let git__log await review."""
    models.Tool.objects.filter(key="git__log").update(seen=False)
    snapshots.forget()


def logged(since: int) -> list[tuple[Any, ...]]:
    return [
        (each.action, each.subject_kind, each.subject_key, each.key, each.before, each.after)
        for each in audit.after(since)
        if each.subject_kind != "draft"
    ]


@pytest.mark.parametrize("kind", CHANGES)
def test_a_draft_makes_nothing_and_applying_it_makes_exactly_the_change(kind: str, reviewed: None) -> None:
    act = CHANGES[kind]
    before, newest = belts.export(), audit.newest_id()
    with clock.stopped(NOW):
        with writing.dry_run():
            act(WRITE.replace(confirm=True))
            wanted, expected = belts.export(), logged(newest)

        draft = drafts.save(WRITE, act)

        assert belts.export() == before
        assert logged(newest) == []
        assert [(each.action, each.before, each.after) for each in draft.changes] == [
            (action, was, now) for action, _, _, _, was, now in expected
        ]
        drafts.apply(WRITE.replace(confirm=True), draft.key)

        assert belts.export() == wanted
        assert sorted(map(str, logged(newest))) == sorted(map(str, expected))


def test_two_loadouts_extend_each_other_the_other_way_round(stored: None) -> None:
    write = WRITE.replace(confirm=True)
    entries.create(write, "loadout", {"name": "one", "plugins": ["git"]})
    entries.create(write, "loadout", {"name": "two", "parent": "one"})
    turned = {"loadouts": [{"name": "one", "parent": "two"}, {"name": "two", "plugins": ["git"]}]}

    draft = drafts.save(WRITE, import_(turned))
    assert snapshots.catalog().loadouts["two"].parent == "one"
    drafts.apply(write, draft.key)

    parents = {name: found.parent for name, found in snapshots.catalog().loadouts.items()}
    assert (parents["one"], parents["two"]) == ("two", "")
    in_a_circle = {"loadouts": [{"name": "two", "parent": "one"}]}
    with pytest.raises(errors.Invalid):
        drafts.save(WRITE, import_(in_a_circle))


@pytest.mark.parametrize("kind", ["a switch", "many at once", "a copy", "a belt"])
def test_what_the_change_asks_the_draft_asks(kind: str, stored: None) -> None:
    for agent in ("ada", "bob"):
        models.Agent.objects.filter(key=agent).update(protected=True)
    snapshots.forget()
    draft = drafts.save(WRITE, CHANGES[kind])

    with pytest.raises(errors.ConfirmationRequired) as raised:
        drafts.apply(WRITE, draft.key)

    assert any("is protected." in reason for reason in raised.value.reasons)


def test_what_was_applied_is_one_change_with_the_key_of_the_draft_and_can_be_undone(stored: None) -> None:
    before = belts.export()
    draft = drafts.save(WRITE, CHANGES["many at once"], title="Less for all")

    change = drafts.apply(writing.by("mia", via="screen").replace(confirm=True), draft.key)

    whole = audit.of_batch(draft.key)
    assert len(whole) == len(draft.changes) == 4
    assert {(entry.actor, entry.reason) for entry in whole} == {("mia", "Less for all")}
    undo.undo_batch(WRITE, change.entry or 0)
    assert belts.export() == before


def test_an_undo_is_kept_as_a_draft(stored: None) -> None:
    before = belts.export()
    switches.flip(WRITE, "bob", "pushing", False)

    draft = drafts.save(WRITE, undo_last)
    drafts.apply(WRITE.replace(confirm=True), draft.key)

    assert belts.export() == before


def test_a_draft_is_applied_once(stored: None) -> None:
    draft = drafts.save(WRITE, flip())
    drafts.apply(WRITE.replace(confirm=True), draft.key)

    for act in (drafts.apply, drafts.prove):
        with pytest.raises(errors.Refused, match="already applied by olive"):
            act(WRITE, draft.key)

    assert len(audit.of_batch(draft.key)) == 1


def test_a_draft_is_not_applied_if_what_it_changes_is_not_as_it_was(stored: None) -> None:
    draft = drafts.save(
        WRITE,
        lambda write: (
            switches.flip(write, "bob", "reading", False),
            entries.change(write, "toolkit", "pushing", {"title": "Push"}),
        ),
    )
    switches.flip(WRITE.replace(confirm=True), "bob", "reading", None)
    entries.change(WRITE, "toolkit", "pushing", {"title": "Pushing"})
    now = belts.export()

    with pytest.raises(drafts.NotAsSeen) as refused:
        drafts.apply(WRITE.replace(confirm=True), draft.key)

    assert set(refused.value.fields) == {"reading of agent bob", "title of toolkit pushing"}
    assert belts.export() == now
    assert drafts.find(draft.key).applied is None


def test_a_draft_is_applied_although_something_else_has_changed(stored: None) -> None:
    draft = drafts.save(WRITE, flip())
    entries.change(WRITE, "agent", "bob", {"title": "Bob"})

    drafts.apply(WRITE.replace(confirm=True), draft.key)

    assert snapshots.find("bob", None).agent.switches == {"reading": False}


def test_a_tool_is_not_approved_in_another_version_than_the_one_of_the_draft(reviewed: None) -> None:
    draft = drafts.save(WRITE, approve)
    models.Tool.objects.filter(key="git__log").update(description="Something else.")
    snapshots.forget()

    with pytest.raises(errors.Stale):
        drafts.apply(WRITE.replace(confirm=True), draft.key)

    assert not snapshots.catalog().tools["git__log"].seen


def test_a_draft_asks_for_the_confirmations_of_the_direct_change(stored: None) -> None:
    entries.change(WRITE, "agent", "ada", {"protected": True})
    act = flip(True, "pushing", "ada")
    with pytest.raises(errors.ConfirmationRequired) as direct:
        act(WRITE)
    draft = drafts.save(WRITE, act)

    with pytest.raises(errors.ConfirmationRequired) as asked:
        drafts.apply(WRITE, draft.key)

    assert asked.value.reasons == direct.value.reasons
    assert asked.value.differences["added"] == ["git__push"]
    assert snapshots.find("ada", None).agent.switches == {}


def test_several_agents_are_asked_about_together_and_by_name(stored: None) -> None:
    for agent in ("ada", "bob"):
        entries.change(WRITE, "agent", agent, {"protected": True})
    draft = drafts.save(
        WRITE, lambda write: [switches.flip(write, agent, "pushing", True) for agent in ("ada", "bob")]
    )

    with pytest.raises(errors.ConfirmationRequired) as asked:
        drafts.apply(WRITE, draft.key)

    destructive = [reason for reason in asked.value.reasons if "destructive" in reason]
    assert [reason.partition(":")[0] for reason in destructive] == ["ada", "bob"]
    tools_before, tools_after = asked.value.differences["tools"]
    assert (tools_after - tools_before, asked.value.differences["added"]) == (2, ["git__push"])


def test_a_draft_whose_rows_were_changed_is_not_applied(stored: None) -> None:
    draft = drafts.save(WRITE, flip())
    row = models.Draft.objects.get(pk=draft.key)
    row.changes[0]["after"] = True
    row.save()

    with pytest.raises(errors.Refused, match="Discard it"):
        drafts.apply(WRITE.replace(confirm=True), draft.key)


def test_what_is_no_configuration_and_what_changes_nothing_is_not_kept(
    stored: None, django_user_model: Any
) -> None:
    django_user_model.objects.create_user("nora")

    for act in (lambda write: roles.set_operators(write, "bob", ["nora"]), flip(True)):
        with pytest.raises(errors.Refused):
            drafts.save(WRITE, act)

    assert not models.Draft.objects.exists()
    assert not audit.page(subject_kind="draft").entries


def test_a_change_that_would_be_another_one_later_is_not_kept(stored: None) -> None:
    def act(write: writing.Write) -> None:
        # An entry is stored without an empty title, so it can never be as this says.
        about: dict[str, Any] = {
            "action": "toolkit.change",
            "before": {"title": None},
            "after": {"title": ""},
        }
        writing.record(write, "toolkit", "pushing", **about)

    with pytest.raises(errors.Refused, match="directly"):
        drafts.save(WRITE, act)

    assert not models.Draft.objects.exists()


def test_a_draft_keeps_no_secret_that_the_audit_log_would_not_have(stored: None) -> None:
    models.Member.objects.filter(toolkit__key="verbose").update(
        options={"token": "sk-live-0123456789abcdef0123"}
    )
    snapshots.forget()

    draft = drafts.save(
        WRITE,
        lambda write: entries.change(
            write,
            "toolkit",
            "verbose",
            {
                "members": [*entries.read("toolkit", "verbose")["members"], "clock"],
            },
        ),
    )

    assert "sk-live" not in str(models.Draft.objects.values().get())
    drafts.apply(WRITE, draft.key)
    assert "sk-live-0123456789abcdef0123" in str(
        models.Member.objects.filter(toolkit__key="verbose").values()
    )


def test_a_draft_ends_and_is_discarded_then(stored: None) -> None:
    draft = drafts.save(WRITE, flip(), ends=clock.now() + dt.timedelta(days=1))

    with clock.stopped(draft.ends):
        with pytest.raises(errors.Refused, match="ended"):
            drafts.apply(WRITE.replace(confirm=True), draft.key)
        assert drafts.discard_ended() == 1

    assert not models.Draft.objects.exists()
    assert [entry.action for entry in audit.page(subject_kind="draft").entries] == ["draft.end", "draft.save"]


def test_saving_and_discarding_are_audited(stored: None) -> None:
    draft = drafts.save(WRITE.replace(reason="Too many"), flip())
    drafts.discard(writing.by("mia", via="api"), draft.key)

    newest, first = audit.page(subject_kind="draft").entries
    assert (first.action, first.actor, first.reason) == ("draft.save", "olive", "Too many")
    assert (newest.action, newest.actor, newest.subject_key) == ("draft.discard", "mia", str(draft.key))
    assert newest.before == {"title": "Turn off reading for bob", "changes": 1}
    with pytest.raises(errors.NotFound):
        drafts.find(draft.key)


def test_whoever_may_make_the_change_may_apply_the_draft(stored: None, django_user_model: Any) -> None:
    own, other = (drafts.save(WRITE, flip(agent=agent, on=False)) for agent in ("bob", "ada"))
    created = drafts.save(WRITE, CHANGES["a toolkit"])
    nora = django_user_model.objects.create_user("nora")
    roles.set_operators(WRITE, "bob", ["nora"])
    operator = django_user_model.objects.create_user("olga")
    roles.assign(WRITE, "olga", "operator")

    assert [drafts.may_apply(nora, draft) for draft in (own, other, created)] == [True, False, False]
    operator = django_user_model.objects.get(username="olga")
    assert [drafts.may_apply(operator, draft) for draft in (own, other, created)] == [True, True, False]
    assert rights.permissions_to_undo(drafts.reversals(created)[0]) == ["toolbelt.add_toolkit"]


def test_the_proof_of_a_draft_is_that_of_its_change(stored: None) -> None:
    draft = drafts.save(WRITE, flip())
    recorded("git__log", agent="bob", state="", subagent="", dispatched=False, definition="")

    proof = drafts.prove(WRITE, draft.key)

    assert (proof.calls, proof.count("refused")) == (1, 1)


def test_a_draft_that_is_kept_longer_meanwhile_is_not_discarded(
    stored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clock.stopped(NOW):
        draft = drafts.save(WRITE, flip(), ends=NOW + dt.timedelta(hours=1))
    # Another process moves its end after the list was read.
    monkeypatch.setattr(rows, "ended", lambda: [draft])
    models.Draft.objects.update(ends=NOW + dt.timedelta(hours=20))

    with clock.stopped(NOW + dt.timedelta(hours=1)):
        assert drafts.discard_ended() == 0

    assert drafts.find(draft.key).applied is None
