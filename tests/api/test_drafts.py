"""Tests that the API saves any dry run as a draft, and applies it for those who may make the change."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest

from tests import factories
from tests.api.conftest import SETUP, Asking, of_operator
from tests.factories import call
from toolbelt import models
from toolbelt.control import drafts, trial_rounds, trials, writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.core import grants
from toolbelt.runtime import surfaces
from toolbelt.store import audit, clock

SAVED = {"on": False, "dry_run": True, "draft": "Less for Bob"}


def save(agent: str = "bob") -> uuid.UUID:
    return drafts.save(SETUP, lambda write: switches.flip(write, agent, "reading", False)).key


def switch_of_bob() -> Any:
    return belts.export()["agents"][1].get("tools_config", {}).get("reading")


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("PUT", "/agents/bob/switches/reading", SAVED),
        ("PUT", "/agents/bob/overrides/kb__find", SAVED),
        ("DELETE", "/agents/bob/switches/reading?dry_run=true&draft=x", None),
        ("PATCH", "/agents/bob/tools-config?dry_run=true&draft=x", {"reading": False}),
        ("PUT", "/agents/bob/tools-config?dry_run=true&draft=x", {}),
        ("PATCH", "/tools/kb__find", {"changes": {"blocked": True}, "dry_run": True, "draft": "x"}),
        ("PATCH", "/agents/bob", {"changes": {"archived": True}, "dry_run": True, "draft": "x"}),
        ("PUT", "/belt?dry_run=1&draft=x", {"agents": [{"key": "bob"}]}),
    ],
)
def test_every_dry_run_can_be_saved_and_applied(olga: Asking, method: str, address: str, body: Any) -> None:
    revision = belts.revision()
    answer = olga.send(method, address, body)

    assert answer.status_code == 200, answer.json()
    assert belts.revision() == revision
    key = answer.json()["draft"]
    assert olga.get(f"/drafts/{key}").json()["changes"]
    applied = olga.post(f"/drafts/{key}/apply", {"confirm": True})
    assert applied.status_code == 200, applied.json()
    assert belts.revision() > revision
    assert models.AuditEntry.objects.get(pk=applied.json()["change"]).batch == uuid.UUID(key)


def test_a_belt_and_an_undo_are_saved(olga: Asking) -> None:
    change = switches.flip(SETUP.replace(confirm=True), "bob", "reading", False)
    for body in ({"belt": {"agents": [{"key": "new"}]}}, {"undo": change.entry}):
        answer = olga.post("/drafts", {**body, "title": "Later", "ends": "2099-01-01T00:00:00Z"})
        assert answer.status_code == 422
        answer = olga.post("/drafts", {**body, "title": "Later", "reason": "Asked for"})
        assert answer.status_code == 201, answer.json()
        assert (answer.json()["title"], answer.json()["reason"]) == ("Later", "Asked for")

    listed = olga.get("/drafts").json()
    assert [draft["changes"][0]["action"] for draft in listed["items"]] == ["switch.set", "agent.create"]
    [flip] = listed["items"][0]["changes"]
    assert (flip["name"], flip["key"], flip["before"], flip["after"]) == ("bob", "reading", False, True)


def test_a_draft_is_not_applied_over_a_later_change(olga: Asking) -> None:
    key = save()
    switches.flip(SETUP.replace(confirm=True), "bob", "reading", None)

    answer = olga.post(f"/drafts/{key}/apply", {"confirm": True})

    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert switch_of_bob() is None


def test_a_draft_is_proved(olga: Asking) -> None:
    key = save()

    answer = olga.post("/proofs", {"draft": str(key)})

    assert (answer.status_code, answer.json()["calls"]) == (200, 0)
    assert olga.post("/proofs", {"draft": str(key), "undo": 1}).status_code == 422
    assert olga.post("/proofs", {"draft": str(uuid.uuid4())}).status_code == 404


def test_a_draft_is_observed_reported_and_stopped(olga: Asking) -> None:
    key = save()
    assert olga.get(f"/drafts/{key}/report").status_code == 404
    answer = olga.post(f"/drafts/{key}/observe", {})
    assert (answer.status_code, answer.json()["trial"]["state"]) == (200, "running")
    assert olga.post(f"/drafts/{key}/observe", {"ends": "2099-01-01T00:00:00Z"}).status_code == 422
    facts = factories.facts("kb__find")
    call("kb__find", agent="bob", session="s1", **facts)
    trial_rounds.run()

    report = olga.get(f"/drafts/{key}/report").json()

    assert (report["proof"]["refused"], report["proof"]["rows"][0]["sessions"]) == (1, 1)
    assert (report["trial"]["mode"], report["observed_rules"]) == ("observe", {})
    assert olga.delete(f"/drafts/{key}/trial").json()["trial"]["state"] == "stopped"
    assert olga.delete(f"/drafts/{key}/trial").status_code == 409


def test_why_a_draft_failed_is_told_to_who_may_read_what_it_changes(olga: Asking) -> None:
    reader = Asking(of_operator("rita", "view_draft", "view_callrecord"))
    entries.put(SETUP, "plugin", {"name": "srv", "namespace": "srv", "upstream": {"command": "true"}})
    draft = drafts.save(SETUP, lambda write: entries.change(write, "plugin", "srv", {"title": "Server"}))
    trials.observe(SETUP, draft.key)
    note = "title of plugin srv was not set, and is Project Zero"
    models.Trial.objects.update(state="stopped", note=note)

    for address in (f"/drafts/{draft.key}", f"/drafts/{draft.key}/report"):
        assert olga.get(address).json()["trial"]["note"] == note
        assert reader.get(address).json()["trial"]["note"].startswith("Those who may read")


def test_a_draft_is_scheduled(olga: Asking) -> None:
    key, starts = save(), grants.format_time(clock.now() + dt.timedelta(hours=1))

    answer = olga.post(f"/drafts/{key}/schedule", {"starts": starts, "confirm": True})

    trial = answer.json()["trial"]
    assert (answer.status_code, trial["mode"], trial["starts"]) == (200, "schedule", starts)
    assert switch_of_bob() is True


@pytest.mark.parametrize("is_revoked", [False, True])
def test_a_draft_is_applied_at_its_time_while_the_token_is_valid(olga: Asking, is_revoked: bool) -> None:
    key, starts = save(), clock.now() + dt.timedelta(hours=1)
    body = {"starts": grants.format_time(starts), "confirm": True}
    assert olga.post(f"/drafts/{key}/schedule", body).status_code == 200
    [token] = tokens.all_tokens()
    if is_revoked:
        tokens.revoke(SETUP, token.prefix)

    with clock.stopped(starts + dt.timedelta(minutes=1)):
        trial_rounds.run()

    trial = trials.latest(key)
    assert trial is not None
    assert (trial.state, token.prefix in trial.note) == (
        ("failed", True) if is_revoked else ("applied", False)
    )
    assert switch_of_bob() is is_revoked
    assert [(entry.actor, entry.via) for entry in audit.of_batch(key)] == (
        [] if is_revoked else [("olga", "api")]
    )


def trial_title(key: uuid.UUID) -> str:
    return drafts.find(key).title


@pytest.mark.parametrize("is_revoked", [False, True])
def test_a_draft_is_rolled_out_while_the_token_is_valid(olga: Asking, is_revoked: bool) -> None:
    key = save()
    body = {"percent": 100, "agents": ["bob"]}
    assert olga.post(f"/drafts/{key}/rollout", body).status_code == 200
    trial = olga.get(f"/drafts/{key}").json()["trial"]
    assert (trial["mode"], trial["percent"], trial["agents"]) == ("rollout", 100, ["bob"])
    arms = {
        "new": {"sessions": 0, "failed": 0},
        "old": {"sessions": 0, "failed": 0},
        "refused": 0,
        "score": 0,
    }
    assert {name: value for name, value in trial["arms"].items() if name != "sentence"} == arms
    assert surfaces.ask("bob", "s1").fingerprint != surfaces.ask("bob").fingerprint
    why = olga.get("/agents/bob/tools/kb__find/why?session=s1").json()
    assert (why["rollout"], olga.get("/agents/bob/tools/kb__find/why").json()["rollout"]) == (
        trial_title(key),
        "",
    )
    [token] = tokens.all_tokens()
    if is_revoked:
        tokens.revoke(SETUP, token.prefix)

    trial_rounds.run()

    found = trials.latest(key)
    assert found is not None
    assert found.state == ("reverted" if is_revoked else "running")
    assert (token.prefix in found.note) is is_revoked
    assert switch_of_bob() is True


def test_a_draft_that_cannot_be_rolled_out_is_refused(olga: Asking) -> None:
    change = {"changes": {"blocked": True}, "dry_run": True, "draft": "x"}
    key = olga.send("PATCH", "/tools/kb__find", change).json()["draft"]

    answer = olga.post(f"/drafts/{key}/rollout", {"confirm": True})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    for body in ({"percent": 0}, {"percent": 101}, {"agents": ["ada"]}):
        assert olga.post(f"/drafts/{save()}/rollout", body).status_code == 422


def test_a_draft_is_discarded(olga: Asking) -> None:
    key = save()

    assert olga.delete(f"/drafts/{key}").status_code == 204
    assert olga.get(f"/drafts/{key}").status_code == 404
    assert olga.get("/drafts/nothing").status_code == 404


def test_an_author_without_the_permission_does_not_discard_what_is_tried(olga: Asking) -> None:
    author = Asking(of_operator("fay"))
    write = writing.by("fay", via="api").replace(confirm=True)
    key = drafts.save(write, lambda write: switches.flip(write, "bob", "reading", False)).key
    assert olga.post(f"/drafts/{key}/observe", {}).status_code == 200

    assert author.delete(f"/drafts/{key}").status_code == 403
    assert olga.delete(f"/drafts/{key}/trial").status_code == 200
    assert author.delete(f"/drafts/{key}").status_code == 204


def test_what_is_saved_needs_the_permission_to_make_it(stored: None) -> None:
    viewer = Asking(of_operator("vera", "view_draft"))
    flipper = Asking(of_operator("flip", "change_agent"))
    key = save()

    assert viewer.put("/agents/bob/switches/reading", SAVED).status_code == 403
    assert viewer.post("/drafts", {"belt": {"agents": [{"key": "new"}]}}).status_code == 403
    assert viewer.get(f"/drafts/{key}").status_code == 200
    assert viewer.post(f"/drafts/{key}/apply", {"confirm": True}).status_code == 403
    assert viewer.delete(f"/drafts/{key}").status_code == 403
    assert viewer.post(f"/drafts/{key}/observe", {}).status_code == 403
    assert viewer.post(f"/drafts/{key}/schedule", {"starts": "2099-01-01T00:00:00Z"}).status_code == 403
    assert viewer.post(f"/drafts/{key}/rollout", {}).status_code == 403
    # Without the permission to view drafts, there are one's own.
    assert flipper.get("/drafts").json()["total"] == 0
    own = flipper.put("/agents/bob/switches/reading", SAVED).json()["draft"]
    assert [draft["key"] for draft in flipper.get("/drafts").json()["items"]] == [own]
    assert flipper.post(f"/drafts/{key}/apply", {"confirm": True}).status_code == 200


def test_a_token_that_may_only_read_saves_and_applies_nothing(stored: None) -> None:
    reader = Asking(of_operator("ruth", "change_agent", scope="read"))
    key = save()

    assert reader.put("/agents/bob/switches/reading", SAVED).status_code == 403
    assert reader.post(f"/drafts/{key}/apply", {"confirm": True}).status_code == 403


def test_an_agent_saves_applies_and_sees_no_draft(bob: Asking, anonymous: Asking) -> None:
    key = save()
    for method, address, body in (
        ("PUT", "/agents/bob/switches/reading", SAVED),
        ("POST", "/drafts", {"belt": {"agents": [{"key": "bob"}]}}),
        ("GET", "/drafts", None),
        ("GET", f"/drafts/{key}", None),
        ("POST", f"/drafts/{key}/apply", {"confirm": True}),
        ("POST", f"/drafts/{key}/observe", {}),
        ("POST", f"/drafts/{key}/schedule", {"starts": "2026-12-01T00:00:00Z", "confirm": True}),
        ("POST", f"/drafts/{key}/rollout", {"confirm": True}),
        ("GET", f"/drafts/{key}/report", None),
        ("DELETE", f"/drafts/{key}", None),
    ):
        assert bob.send(method, address, body).status_code == 403
        assert anonymous.send(method, address, body).status_code == 401

    assert switch_of_bob() is True
    assert models.Draft.objects.count() == 1


def test_a_change_that_is_made_is_not_saved_instead(olga: Asking) -> None:
    answer = olga.put("/agents/bob/switches/reading", {"on": False, "draft": "x"})

    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "draft")
    assert switch_of_bob() is True
