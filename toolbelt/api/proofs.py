"""Proofs: what a change would have done to the calls that are recorded."""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, names, problems, schemas
from toolbelt.control import drafts, proofs, undo
from toolbelt.control.people import rights
from toolbelt.core import errors

router = ninja.Router(tags=["changes"])


class ProofRequest(schemas.Body):
    """The change to prove: a belt, the undo of a change, or a draft."""

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


class ProofRow(ninja.Schema):
    """Calls of one tool by one agent that would go otherwise, for one reason."""

    agent: str
    tool: str
    today: Annotated[
        str,
        pydantic.Field(
            description="What would become of them today: `admitted`, `load_first`, `ask_first` or `refused`."
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
            " `agent-gone`, `arguments-not-recorded`, `past-not-recorded`."
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
    if [body.belt, body.undo, body.draft].count(None) != 2:
        raise errors.Invalid.of("Name one of these: a belt, the change to undo, or a draft.")
    if body.draft is not None:
        auth.require_undo_permissions(request, drafts.reversals(drafts.find(body.draft)))
        return proofs.document(drafts.prove(write, body.draft, days=body.days))
    if body.belt is not None:
        auth.require_permissions(request, *rights.permissions_to_import(body.belt))
        return proofs.document(proofs.of_belt(write, body.belt, days=body.days))
    number = body.undo or 0
    auth.require_undo_permissions(request, undo.batch_of(number))
    return proofs.document(proofs.of_undo(write, number, days=body.days))
