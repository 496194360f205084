"""Proofs: what a change would have done to the calls that are recorded."""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, names, problems, schemas
from toolbelt.control import described_changes, drafts, proofs, undo
from toolbelt.control.people import rights
from toolbelt.core import errors

router = ninja.Router(tags=["changes"])


# The most changes of a request.
MAX_CHANGES = 200


class DescribedChange(schemas.Body):
    """One change, as the audit log would have it."""

    kind: Annotated[names.Name, pydantic.Field(description="The kind of the object, such as `agent`.")]
    name: Annotated[names.Name, pydantic.Field(description="Its name or key.")]
    key: Annotated[
        names.Text,
        pydantic.Field(description="For a switch or an override of an agent, its toolkit or tool."),
    ] = ""
    after: Annotated[
        Any,
        pydantic.Field(
            description="With a `key`, whether it is on: true, false, or null, which resets it. Otherwise the fields"
            " that change, in which null resets one, or those of a new object; null removes the object."
        ),
    ]


class ProofRequest(schemas.Body):
    """The change to prove: changes, a belt, the undo of a change, or a draft; and by which calls."""

    changes: Annotated[
        list[DescribedChange] | None,
        pydantic.Field(
            min_length=1, max_length=MAX_CHANGES, description="Changes that would be made in this order."
        ),
    ] = None

    belt: Annotated[
        dict[str, Any] | None, pydantic.Field(description="The entries that would be created and changed.")
    ] = None
    undo: Annotated[
        int | None,
        pydantic.Field(
            ge=1, le=2**63 - 1, description="The id of a change, which would be undone with its batch."
        ),
    ] = None
    draft: Annotated[
        names.Name | None, pydantic.Field(description="The key of a draft, which would be applied.")
    ] = None
    days: names.Days = proofs.DAYS
    basis: names.Basis = "now"


class ProofRow(ninja.Schema):
    """Calls of one tool by one agent that would go otherwise, for one reason."""

    agent: str
    tool: str
    today: Annotated[
        str,
        pydantic.Field(
            description="What would become of them without the change, today or (basis `then`) at their time:"
            " `admitted`, `load_first`, `ask_first` or `refused`."
        ),
    ]
    changed: Annotated[str, pydantic.Field(description="What would become of them with the change.")]
    because: Annotated[str, pydantic.Field(description="Why, in words.")]
    calls: int
    ran: Annotated[int, pydantic.Field(description="How many of them ran when they were made.")]
    sessions: Annotated[int, pydantic.Field(description="In how many sessions they were made.")]
    last: Annotated[str | None, pydantic.Field(description="When the last one was made.")]
    examples: Annotated[list[int], pydantic.Field(description="The ids of the newest.")]


class ProofResult(ninja.Schema):
    """What a change would have done to the recorded calls."""

    days: int
    basis: Annotated[
        str,
        pydantic.Field(
            description="`now`: both sides are what is decided today. `then`: what was decided when each call was made."
        ),
    ]
    since: str
    sentence: Annotated[str, pydantic.Field(description="The result in one sentence.")]
    coverage_sentence: Annotated[
        str, pydantic.Field(description="How much could be replayed, and why the rest could not.")
    ]
    reason: Annotated[
        str,
        pydantic.Field(
            description="Why it should be confirmed: it would have refused calls that ran lately. Empty: it would not."
        ),
    ]
    calls: Annotated[int, pydantic.Field(description="The recorded calls that the change could concern.")]
    coverage: Annotated[
        float, pydantic.Field(description="The share of them that could be replayed: 0 to 1.")
    ]
    refused: Annotated[int, pydantic.Field(description="Calls that would newly be refused.")]
    load_first: Annotated[int, pydantic.Field(description="Calls whose tool would have to be loaded first.")]
    ask_first: Annotated[int, pydantic.Field(description="Calls that would wait for a person.")]
    admitted: Annotated[int, pydantic.Field(description="Calls that would newly run.")]
    unproven: Annotated[
        dict[str, int],
        pydantic.Field(
            description="Calls that could not be replayed, by reason: `no-facts` (recorded before facts were),"
            " `agent-gone`, `arguments-not-recorded`, `past-not-recorded`; with the basis `then` also `no-revision`,"
            " `history-gap` and `not-there-yet`."
        ),
    ]
    fields: Annotated[
        dict[str, list[str]],
        pydantic.Field(description="By tool, the arguments that are not recorded and would decide."),
    ]
    rows: list[ProofRow]


@router.post("/proofs", auth=auth.writing(), response={200: ProofResult, **problems.documented(404, 409)})
def prove_change(request: HttpRequest, body: ProofRequest) -> Any:
    """Replay the recorded calls as if a change was made, and report which would go otherwise.

    Nothing is called or written. Requires the permission to make the change, and to view calls.
    """
    # A proof tells of calls.
    auth.require_viewing(request, "call_record")
    write = auth.write(request, confirm=True)
    if [body.changes, body.belt, body.undo, body.draft].count(None) != 3:
        raise errors.Invalid.of("Name one of these: changes, a belt, the change to undo, or a draft.")
    days, basis = body.days, body.basis
    if body.changes is not None:
        changes = [described_changes.Change(**change.model_dump()) for change in body.changes]
        auth.require_undo_permissions(request, described_changes.reversals(changes))
        proof = proofs.prove(lambda: described_changes.make(write, changes), days=days, basis=basis)
    elif body.draft is not None:
        auth.require_undo_permissions(request, drafts.reversals(drafts.find(body.draft)))
        proof = drafts.prove(write, body.draft, days=days, basis=basis)
    elif body.belt is not None:
        auth.require_permissions(request, *rights.permissions_to_import(body.belt))
        proof = proofs.of_belt(write, body.belt, days=days, basis=basis)
    else:
        number = body.undo or 0
        auth.require_undo_permissions(request, undo.batch_of(number))
        proof = proofs.of_undo(write, number, days=days, basis=basis)
    return proofs.document(proof)
