"""Drafts: changes that are kept instead of made, and applied as they were seen."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import uuid
from collections.abc import Callable
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, change_results, names, paging, problems, schemas
from toolbelt.api import proofs as proof_results
from toolbelt.control import drafts, proofs, trials, undo, writing
from toolbelt.control.config import belt_plans
from toolbelt.control.people import rights
from toolbelt.control.reports import audit_serializer
from toolbelt.core import errors, rollouts

router = ninja.Router(tags=["drafts"])


class DraftRequest(schemas.Body):
    """The change to keep: either a belt, or the undo of a change."""

    belt: Annotated[
        dict[str, Any] | None, pydantic.Field(description="The entries that would be created and changed.")
    ] = None
    undo: Annotated[
        int | None,
        pydantic.Field(
            ge=1, le=2**63 - 1, description="The id of a change, which would be undone with its batch."
        ),
    ] = None
    title: Annotated[names.Text, pydantic.Field(description="What it changes. Empty: Toolbelt says it.")] = ""
    ends: Annotated[
        names.Timestamp | None,
        pydantic.Field(description=f"When it is discarded: in {drafts.KEPT.days} days, if this is missing."),
    ] = None
    reason: names.Reason = ""


class Arm(ninja.Schema):
    """The sessions of one side of a roll-out."""

    sessions: int
    failed: Annotated[int, pydantic.Field(description="How many of them have a refused or failed call.")]


class Arms(ninja.Schema):
    """Both sides of a roll-out, as they were counted in the last minute."""

    new: Annotated[Arm, pydantic.Field(description="The sessions that have it.")]
    old: Annotated[Arm, pydantic.Field(description="The other sessions of the same agents.")]
    refused: Annotated[
        int, pydantic.Field(description="In how many sessions only its changes refused a call.")
    ]
    score: Annotated[
        float,
        pydantic.Field(description="By how many standard errors more of the sessions that have it failed."),
    ]
    sentence: Annotated[str, pydantic.Field(description="The comparison, in words.")]

    @staticmethod
    def resolve_sentence(arms: rollouts.Arms) -> str:
        """Return the comparison, in words."""
        return trials.compare(arms)


class Trial(ninja.Schema):
    """A draft that is observed, applied at a time, or rolled out to some sessions first."""

    mode: Annotated[str, pydantic.Field(description="`observe`, `schedule` or `rollout`.")]
    state: Annotated[
        str,
        pydantic.Field(
            description="`running`, `ended`, `stopped` (by a person, or because of `note`), `applied`, or `failed` or"
            " `reverted` because of `note`."
        ),
    ]
    author: Annotated[str, pydantic.Field(description="Who began it; a draft is applied as that user.")]
    starts: Annotated[
        dt.datetime,
        pydantic.Field(
            description="From when calls are counted, or sessions have it, or when it is applied."
        ),
    ]
    ends: Annotated[
        dt.datetime,
        pydantic.Field(
            description="Until when calls are counted, or sessions have it, or it may be applied."
        ),
    ]
    percent: Annotated[
        int, pydantic.Field(description="The share of sessions that a roll-out is for; 0 for others.")
    ]
    agents: Annotated[list[str], pydantic.Field(description="The agents that a roll-out is for.")]
    arms: Annotated[Arms | None, pydantic.Field(description="How a roll-out goes; null for others.")]
    note: str

    @staticmethod
    def resolve_arms(trial: trials.Trial) -> rollouts.Arms | None:
        """Return the arms of a roll-out."""
        return trial.arms if trial.mode == "rollout" else None


class DraftChange(ninja.Schema):
    """A change of a draft, as the audit log would record it."""

    action: str
    kind: Annotated[str, pydantic.Field(description="The kind of the object that is changed.")]
    name: Annotated[str, pydantic.Field(description="The name of the object that is changed.")]
    key: Annotated[str, pydantic.Field(description="For a switch or an override, its toolkit or tool.")]
    before: Any
    after: Any


class Draft(ninja.Schema):
    """A change that is kept."""

    key: uuid.UUID
    title: str
    author: str
    reason: str
    at: dt.datetime
    ends: Annotated[dt.datetime, pydantic.Field(description="When it is discarded.")]
    revision: Annotated[
        int, pydantic.Field(description="The revision of the configuration that its author saw.")
    ]
    applied: Annotated[dt.datetime | None, pydantic.Field(description="When it was applied.")]
    applied_by: str
    changes: list[DraftChange]
    trial: Annotated[Trial | None, pydantic.Field(description="How it was tried last.")]


class Observe(schemas.Body):
    """Until when a draft is observed."""

    ends: Annotated[
        names.Timestamp | None,
        pydantic.Field(
            description=f"In {trials.DAYS} days, if this is missing; at most in {trials.MAX_DAYS}."
        ),
    ] = None
    reason: names.Reason = ""


class Schedule(schemas.Body):
    """When a draft is applied."""

    starts: names.Timestamp
    reason: names.Reason = ""
    confirm: names.Confirm = False


class RollOut(schemas.Body):
    """In which sessions a draft counts, and until when."""

    percent: Annotated[
        int, pydantic.Field(ge=1, le=100, description="The share of the agents' sessions, in percent.")
    ] = trials.PERCENT
    agents: Annotated[
        list[names.Name],
        pydantic.Field(description="Only these of the agents that it changes. Empty: all of them."),
    ] = []
    ends: Annotated[
        names.Timestamp | None,
        pydantic.Field(
            description=f"In {trials.DAYS} days, if this is missing; at most in {trials.MAX_DAYS}."
        ),
    ] = None
    reason: names.Reason = ""
    confirm: names.Confirm = False


class DraftReport(ninja.Schema):
    """What observing a draft has counted until now."""

    trial: Trial
    proof: Annotated[
        proof_results.ProofResult, pydantic.Field(description="What the draft would have done to the calls.")
    ]
    observed_rules: Annotated[
        dict[str, int],
        pydantic.Field(description="How many calls observed gate rules would have decided in this time."),
    ]


class Apply(schemas.Body):
    """The reason and the confirmation of applying a draft."""

    reason: names.Reason = ""
    confirm: names.Confirm = False


@router.get("/drafts", auth=auth.reading(), response=paging.list_of(Draft))
def list_drafts(request: HttpRequest, query: ninja.Query[paging.PageQuery]) -> Any:
    """List drafts, newest first: all of them with the permission to view drafts, else your own."""
    author = "" if _may_view_all(request) else auth.bearer(request).name
    shown = drafts.listed(author, part=slice(query.offset, query.offset + query.limit))
    tried = trials.latest_of([draft.key for draft in shown])
    documents = [_document(request, draft, tried.get(draft.key)) for draft in shown]
    return paging.page(request, query, documents, drafts.count(author))


@router.post(
    "/drafts",
    auth=auth.writing(),
    response={201: Draft, **problems.documented(404, 409)},
)
def create_draft(request: HttpRequest, body: DraftRequest) -> Any:
    """Save a change as a draft, and make nothing of it. Every dry run can be saved as well, with `draft`.

    Requires the permission to make the change.
    """
    write = auth.write(request, reason=body.reason)
    if (body.belt is None) is (body.undo is None):
        raise errors.Invalid.of("Name either a belt or the change to undo.")
    act: Callable[[writing.Write], object]
    if body.belt is not None:
        auth.require_permissions(request, *rights.permissions_to_import(body.belt))
        act = functools.partial(belt_plans.apply, document=body.belt)
    else:
        number = body.undo or 0
        auth.require_undo_permissions(request, undo.batch_of(number))
        act = functools.partial(undo.undo_batch, entry_id=number)

    return ninja.Status(201, _read(request, drafts.save(write, act, title=body.title, ends=body.ends)))


@router.get("/drafts/{draft}", auth=auth.reading(), response=Draft)
def read_draft(request: HttpRequest, draft: names.Name) -> Any:
    """Retrieve a draft."""
    return _read(request, _find(request, draft))


@router.post(
    "/drafts/{draft}/apply",
    auth=auth.writing(),
    response={200: change_results.ChangeResult, **problems.documented(404, 409)},
)
def apply_draft(request: HttpRequest, draft: names.Name, body: Apply) -> Any:
    """Make the change of a draft, exactly as it was seen. Undoing it undoes all of it: its batch is the draft's key.

    Requires the permission to make the change. Returns 409 `stale` if anything that it changes is not as it was, and
    `refused` if it was applied.
    """
    found = _find(request, draft)
    auth.require_undo_permissions(request, drafts.reversals(found))
    write = auth.write(request, reason=body.reason, confirm=body.confirm)
    return change_results.report(drafts.apply(write, found.key))


@router.post(
    "/drafts/{draft}/observe",
    auth=auth.writing(),
    response={200: Draft, **problems.documented(404, 409)},
)
def observe_draft(request: HttpRequest, draft: names.Name, body: Observe) -> Any:
    """Observe a draft from now on, or until another end: count what it would do to the calls that are made. Nothing
    changes for agents.

    Requires the permission to make its change.
    """
    found, write = _to_try(request, draft), auth.write(request, reason=body.reason)
    trials.observe_until(write, found.key, body.ends)
    return _read(request, drafts.find(found.key))


@router.post(
    "/drafts/{draft}/schedule",
    auth=auth.writing(),
    response={200: Draft, **problems.documented(404, 409)},
)
def schedule_draft(request: HttpRequest, draft: names.Name, body: Schedule) -> Any:
    """Apply a draft at a time, as you: if you may make its change then, your token is still valid, and what it changes
    is as it was.

    Requires the permission to make its change. Far-reaching changes are confirmed now, and no others are made.
    """
    found = _to_try(request, draft)
    write = auth.write(request, reason=body.reason, confirm=body.confirm)
    trials.schedule(write, found.key, body.starts, token=auth.bearer(request).prefix)
    return _read(request, drafts.find(found.key))


@router.post(
    "/drafts/{draft}/rollout",
    auth=auth.writing(),
    response={200: Draft, **problems.documented(404, 409)},
)
def roll_out_draft(request: HttpRequest, draft: names.Name, body: RollOut) -> Any:
    """Let a draft count in some of the sessions of the agents that it changes, as you; a session always has the same
    side, and requests without one have nothing of it. Applying the draft lets it count in all sessions.

    It is taken back at its end, if you may not make its change any more, if what it changes is not as it was, or if the
    sessions that have it do worse. Requires the permission to make its change. Far-reaching changes are confirmed now.
    Returns 409 `refused` for a draft that cannot count in only some sessions.
    """
    found = _to_try(request, draft)
    write = auth.write(request, reason=body.reason, confirm=body.confirm)
    trials.roll_out(
        write,
        found.key,
        percent=body.percent,
        agents=body.agents,
        ends=body.ends,
        token=auth.bearer(request).prefix,
    )
    return _read(request, drafts.find(found.key))


@router.delete(
    "/drafts/{draft}/trial",
    auth=auth.writing(),
    response={200: Draft, **problems.documented(404, 409)},
)
def stop_draft(request: HttpRequest, draft: names.Name, query: ninja.Query[names.ReasonQuery]) -> Any:
    """Stop observing a draft or rolling it out, or do not apply it at its time. What was counted stays."""
    found = _to_try(request, draft)
    trials.stop(auth.write(request, reason=query.reason), found.key)
    return _read(request, drafts.find(found.key))


@router.get(
    "/drafts/{draft}/report",
    auth=auth.viewing("call_record"),
    response={200: DraftReport, **problems.documented(404)},
)
def read_report(request: HttpRequest, draft: names.Name) -> Any:
    """Retrieve what observing a draft has counted until now."""
    found = _find(request, draft)
    trial = trials.latest(found.key)
    if trial is None or trial.mode != "observe":
        raise errors.NotFound("observation of the draft", draft)
    return {
        "trial": _shown(request, trial),
        "proof": proofs.document(trials.report(trial)),
        "observed_rules": trials.observed_rules(trial),
    }


@router.delete("/drafts/{draft}", auth=auth.writing(), response={204: None, **problems.documented(404)})
def discard_draft(request: HttpRequest, draft: names.Name, query: ninja.Query[names.ReasonQuery]) -> Any:
    """Discard a draft. Requires the permission to make its change, unless it is yours and not tried."""
    found = _find(request, draft)
    if not auth.allows(request, drafts.may_discard, found):
        auth.require_undo_permissions(request, drafts.reversals(found))
    drafts.discard(auth.write(request, reason=query.reason), found.key)
    return ninja.Status(204, None)


def _find(request: HttpRequest, key: str) -> drafts.Draft:
    """Return a draft that the sender may see; raise HttpProblem for another one, and errors.NotFound."""
    draft = drafts.find(key)
    if not auth.allows(request, drafts.may_see, draft):
        auth.require_undo_permissions(request, drafts.reversals(draft))
    return draft


def _to_try(request: HttpRequest, key: str) -> drafts.Draft:
    """Return a draft that the sender may apply."""
    found = _find(request, key)
    auth.require_undo_permissions(request, drafts.reversals(found))
    return found


def _may_view_all(request: HttpRequest) -> bool:
    return bool(auth.readable_kinds(request, ["draft"]))


def _read(request: HttpRequest, draft: drafts.Draft) -> dict[str, Any]:
    return _document(request, draft, trials.latest(draft.key))


def _document(request: HttpRequest, draft: drafts.Draft, trial: trials.Trial | None) -> dict[str, Any]:
    readable = auth.readable_kinds(request, {change.subject_kind for change in draft.changes})
    changes = [
        audit_serializer.serialize(change, is_open=change.subject_kind in readable)
        for change in draft.changes
    ]
    names_of_draft = ("key", "title", "author", "reason", "at", "ends", "revision", "applied", "applied_by")
    return {name: getattr(draft, name) for name in names_of_draft} | {
        "changes": [{name: change[name] for name in DraftChange.model_fields} for change in changes],
        "trial": trial and _shown(request, trial),
    }


def _shown(request: HttpRequest, trial: trials.Trial) -> trials.Trial:
    """Return a trial with what the sender may know of why it failed."""
    readable = auth.readable_kinds(request, trial.kinds)
    return dataclasses.replace(trial, note=trials.why(trial, readable.__contains__))
