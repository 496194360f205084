"""The result of a change: the values before and after, the effect on what the model sees, and the id to undo it by."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol, TypeVar

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth
from toolbelt.api import proofs as proof_results
from toolbelt.control import drafts, dry_runs, guards, proofs, writing
from toolbelt.control.catalog import blocking
from toolbelt.core import effects, errors

_Result = TypeVar("_Result")


class Conversations(ninja.Schema):
    """Live conversations, by what a change does to them."""

    continued: Annotated[int, pydantic.Field(description="The change is appended to them.")]
    in_words: Annotated[
        int, pydantic.Field(description="It is appended in words, and calls of removed tools are refused.")
    ]
    rewritten: Annotated[
        int,
        pydantic.Field(
            description="Their programs send no `conversation`: the model may refuse their next request."
        ),
    ]
    restarted: Annotated[
        int, pydantic.Field(description="They have read what is purged, and begin again: only for a purge.")
    ]


class Effect(ninja.Schema):
    """How a change affects what the model sees."""

    tools: Annotated[
        tuple[int, int], pydantic.Field(description="The number of tools, as `[before, after]`.")
    ]
    tokens: Annotated[
        tuple[int, int], pydantic.Field(description="The number of tokens, as `[before, after]`.")
    ]
    added: Annotated[list[str], pydantic.Field(description="The tools that are added.")]
    removed: Annotated[list[str], pydantic.Field(description="The tools that are removed.")]
    policy: Annotated[
        list[tuple[str, str, str]],
        pydantic.Field(
            description="The toolkits whose policy text changes, as `[toolkit, before, after]`: on, off or none."
        ),
    ]
    on_request_added: Annotated[
        list[str],
        pydantic.Field(description="The tools that the agent now gets on request, and did not have."),
    ]
    on_request_removed: Annotated[
        list[str],
        pydantic.Field(description="The tools that the agent got on request, and no longer gets at all."),
    ]
    breaks: Annotated[
        list[str],
        pydantic.Field(description="The parts of prompt caches that it invalidates: `tools`, `system text`."),
    ]
    sessions: Annotated[
        int | None,
        pydantic.Field(
            description="For a dry run, the number of live conversations that it affects; otherwise null."
        ),
    ]
    conversations: Annotated[
        Conversations | None,
        pydantic.Field(description="For a dry run, the same by what happens to them; otherwise null."),
    ]


class Reach(ninja.Schema):
    """Which agents a block, or its end, concerns."""

    agents: Annotated[
        dict[str, int],
        pydantic.Field(description="How many of its tools, which are on, each agent loses or gets back."),
    ]
    on_request: Annotated[
        list[str], pydantic.Field(description="The agents that only had them on request, or get them back.")
    ]
    conversations: Annotated[
        Conversations, pydantic.Field(description="The live conversations of all of these agents.")
    ]


class Tried(ninja.Schema):
    """What a dry run tells beside its change."""

    dry_run: Annotated[bool, pydantic.Field(description="Whether nothing was written.")] = False
    reasons: Annotated[
        list[str], pydantic.Field(description="For a dry run, why the change would have to be confirmed.")
    ] = []
    past: Annotated[
        proof_results.ProofResult | None,
        pydantic.Field(description="For a dry run with `prove`, what the change would have done."),
    ] = None
    draft: Annotated[
        uuid.UUID | None,
        pydantic.Field(description="For a dry run with `draft`, the key of the saved draft."),
    ] = None


class ChangeResult(Tried):
    """What a change did."""

    change: Annotated[
        int | None,
        pydantic.Field(
            description="The id of the change, to undo it by. Null if there was nothing to change."
        ),
    ]
    before: Annotated[Any, pydantic.Field(description="The previous values of the fields that changed.")]
    after: Annotated[Any, pydantic.Field(description="The new values of the fields that changed.")]
    effect: Annotated[
        Effect | None, pydantic.Field(description="Null unless the change affects exactly one agent.")
    ] = None
    reach: Annotated[
        Reach | None, pydantic.Field(description="Null unless the change blocks or unblocks something.")
    ] = None
    left_out: Annotated[
        list[int],
        pydantic.Field(
            description="For an undo, the ids of the changes in the batch that were observed, and stay."
        ),
    ] = []


class Trying(Protocol):
    """What a request asks for beside the change itself.

    ``dry_run``: only to try it, and then also to report what it would have done in the days of ``prove``, or to save it
    as a draft with the title ``draft``.
    """

    dry_run: bool
    prove: int | None
    draft: str | None


def make(
    request: HttpRequest,
    write: writing.Write,
    act: Callable[[writing.Write], writing.Change],
    asked: Trying,
    *,
    agent: str = "",
) -> tuple[writing.Change, dict[str, Any]]:
    """Make a change, or only try it, as ``asked``; return it and its report. ``agent`` is the one that it changes.

    Raise Invalid for the body of a DELETE, which could ask for a dry run and would not be read.
    """
    if request.method == "DELETE" and request.body:
        raise errors.Invalid.of(
            "A DELETE has no body: write its parameters, such as dry_run, in the address."
        )
    if not asked.dry_run:
        refuse_without_dry_run(asked)
        change = act(write)
        return change, report(change)
    result = dry_runs.run(write, act, agent=agent)
    return result.change, {**report(result.change), **_tried(request, write, act, asked, result.reasons)}


def try_or_make(
    request: HttpRequest, write: writing.Write, act: Callable[[writing.Write], _Result], asked: Trying
) -> tuple[_Result, dict[str, Any]]:
    """Make a change with a result of its own, or only try it; return the result, and what a :class:`Tried` tells."""
    if not asked.dry_run:
        refuse_without_dry_run(asked)
        return act(write), {}
    with writing.dry_run():
        result, reasons = dry_runs.confirming(write, act)
    return result, _tried(request, write, act, asked, reasons)


def _tried(
    request: HttpRequest,
    write: writing.Write,
    act: Callable[[writing.Write], object],
    asked: Trying,
    reasons: Sequence[str],
) -> dict[str, Any]:
    """Return what a dry run tells beside its change."""
    past, reasons = None, [*reasons]
    if asked.prove is not None:
        # A proof tells of calls.
        auth.require_viewing(request, "call_record")
        past = proofs.document(proofs.prove(lambda: act(write.replace(confirm=True)), days=asked.prove))
        reasons += filter(None, [past["reason"]])
    draft = save_draft(write, act, asked.draft)
    return {"dry_run": True, "reasons": reasons, "past": past, "draft": draft}


def save_draft(
    write: writing.Write, act: Callable[[writing.Write], object], title: str | None
) -> uuid.UUID | None:
    """Save a change as a draft with this title, and return its key; None if it is not to be saved."""
    return drafts.save(write, act, title=title).key if title is not None else None


def refuse_without_dry_run(asked: Trying) -> None:
    """Raise Invalid if a change that is made is to be proved, or saved as a draft."""
    for name, value in (("prove", asked.prove), ("draft", asked.draft)):
        if value is not None:
            message = "this is for a dry run: add dry_run, or leave this out."
            raise errors.Invalid([errors.Problem(path=name, message=message)])


def report(change: writing.Change) -> dict[str, Any]:
    """Return a change as a JSON object."""
    return {
        "change": change.entry,
        "before": change.before,
        "after": change.after,
        "effect": effect(change.effect),
        "reach": _reach(change),
        "left_out": list(change.left_out),
    }


def _reach(change: writing.Change) -> dict[str, Any] | None:
    if not isinstance(change, blocking.BlockChange) or not change.is_moved:
        return None
    return {
        "agents": dict(change.agents),
        "on_request": list(change.on_request),
        "conversations": change.conversations._asdict(),
    }


def effect(change_effect: effects.Effect | None) -> dict[str, Any] | None:
    """Return an effect as a JSON object, in the form that a request for confirmation uses."""
    if change_effect is None:
        return None
    serialized = guards.describe_effect("", None, change_effect)
    return {name: serialized[name] for name in Effect.model_fields}
