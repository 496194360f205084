"""Proposals of smaller belts: the least that agents need, by their recorded calls."""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, names, problems, schemas
from toolbelt.api import proofs as proof_results
from toolbelt.control import least_privilege
from toolbelt.control.people import rights

router = ninja.Router(tags=["changes"])

# The most agents and patterns of a request.
MAX_NAMES = 1000


class ProposalRequest(schemas.Body):
    """For whom, by which calls, and what stays."""

    agents: Annotated[
        list[names.Name],
        pydantic.Field(
            max_length=MAX_NAMES, description="For these agents. Empty: for all that are not archived."
        ),
    ] = []
    days: names.Days = least_privilege.DAYS
    keep: Annotated[
        list[names.Name],
        pydantic.Field(
            max_length=MAX_NAMES,
            description="Tools, toolkits and plugins that stay; `*` stands for the rest of a name.",
        ),
    ] = []
    turn_off: Annotated[
        names.Boolean,
        pydantic.Field(
            description="Also turn off unused tools of toolkits, plugins and categories that are used."
        ),
    ] = False


class ProposalStep(ninja.Schema):
    """A step: `load` clears switches of toolkits, which can be loaded instead; `clear` clears overrides and always-on
    tools; `loadout` gives the agent its own, with these plugins and categories; `off` turns tools off.
    """

    kind: str
    names: list[str]


class AgentProposal(ninja.Schema):
    """What is proposed for an agent."""

    agent: str
    calls: Annotated[int, pydantic.Field(description="How many calls it made in these days.")]
    exception: Annotated[
        str | None,
        pydantic.Field(
            description="Why nothing is proposed: `few-calls`, `short-history` or `uncertain-history`."
        ),
    ]
    tools: Annotated[
        tuple[int, int] | None, pydantic.Field(description="The number of tools, as `[before, after]`.")
    ]
    tokens: Annotated[
        tuple[int, int] | None, pydantic.Field(description="Their tokens, as `[before, after]`.")
    ]
    steps: list[ProposalStep]
    unused: Annotated[
        dict[str, str],
        pydantic.Field(
            description="The tools that stay and were not called, with why: `kept`, `new`, `ends`, `unavailable`,"
            " `not-recorded`, or `together` (their toolkit, plugin or category is used)."
        ),
    ]


class ProposalResult(ninja.Schema):
    """A smaller belt, with its proof."""

    days: int
    since: str
    sentence: Annotated[str, pydantic.Field(description="The result in one sentence.")]
    tokens: Annotated[
        tuple[int, int],
        pydantic.Field(
            description="The tokens of one request of each agent that changes, `[before, after]`."
        ),
    ]
    agents: list[AgentProposal]
    belt: Annotated[
        dict[str, Any],
        pydantic.Field(description="The entries that would change, to be imported; empty: nothing would."),
    ]
    proof: Annotated[
        proof_results.ProofResult | None,
        pydantic.Field(description="What importing the belt would have done."),
    ]


@router.post(
    "/proposals", auth=auth.writing(), response={200: ProposalResult, **problems.documented(404, 409)}
)
def propose_belt(request: HttpRequest, body: ProposalRequest) -> Any:
    """Propose the smallest belt that refuses none of the recorded calls of agents.

    Nothing is written: import the belt with `PUT /belt`. Requires the permission to import it (to add and to change
    agents and loadouts), and to view calls.
    """
    auth.require_viewing(request, "call_record")
    auth.require_permissions(request, *rights.permissions_to_propose())
    proposal = least_privilege.propose(
        auth.write(request), body.agents, days=body.days, keep=body.keep, turn_off=body.turn_off
    )
    return least_privilege.document(proposal)
