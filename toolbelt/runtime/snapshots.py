"""What is the frozen input of this agent's question, as things stand now?"""

from __future__ import annotations

from toolbelt import conf
from toolbelt.core import agents, errors, resolution
from toolbelt.store import snapshots

LONGEST_ID = 200


def take(
    agent: str, session: str | None = None, request_id: str | None = None, subagent: str | None = None
) -> tuple[resolution.Snapshot, snapshots.Found]:
    """Read the snapshot of a question, and what it was read from.

    Raises errors.NotFound for an unknown agent and errors.Invalid for ids or a subagent kind that cannot be.
    """
    _check(session=session, request_id=request_id, subagent=subagent)
    if not agent.isprintable():
        # No agent is called so, and PostgreSQL does not take a NUL to look for.
        raise errors.NotFound("agent", agent)
    found = snapshots.find(agent, session)
    snapshot = resolution.Snapshot(
        catalog=found.catalog,
        agent=found.agent,
        session=found.session,
        request_id=request_id,
        subagent=subagent,
        kind_loadouts=conf.KIND_LOADOUTS,
    )
    return snapshot, found


def _check(*, session: str | None, request_id: str | None, subagent: str | None) -> None:
    problems = [
        errors.Problem(
            path=path, message=f"an id is 1 to {LONGEST_ID} characters, none of them a control character."
        )
        for path, value in (("session", session), ("request_id", request_id))
        if value is not None and not (0 < len(value) <= LONGEST_ID and value.isprintable())
    ]
    if subagent is not None and subagent not in agents.KINDS:
        kinds = ", ".join(agents.KINDS)
        problems.append(
            errors.Problem(path="subagent", message=f"{subagent!r} is not a kind of agent: {kinds}.")
        )
    if problems:
        raise errors.Invalid(problems)
