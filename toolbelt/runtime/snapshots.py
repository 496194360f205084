"""What is the frozen input of this agent's question, as things stand now?"""

from __future__ import annotations

from toolbelt import conf
from toolbelt.core import agents, errors, resolution, sessions
from toolbelt.store import clock, looks, snapshots


def take(
    agent: str, session: str | None = None, request_id: str | None = None, subagent: str | None = None
) -> tuple[resolution.Snapshot, snapshots.Found]:
    """Read the snapshot of a question, and what it was read from.

    Raises errors.NotFound for an unknown agent, errors.Archived for one that is put away, and errors.Invalid for ids or
    a subagent kind that cannot be.
    """
    _check(session=session, request_id=request_id, subagent=subagent)
    if not agent.isprintable():
        # No agent is called so, and PostgreSQL does not take a NUL to look for.
        raise errors.NotFound("agent", agent)
    found = snapshots.find(agent, session)
    if found.agent.archived:
        raise errors.Archived(agent)
    return _snapshot(found, request_id, subagent), found


def known(
    look: looks.Look, session: str | None = None, request_id: str | None = None, subagent: str | None = None
) -> resolution.Snapshot | None:
    """Give the snapshot of a sound question after this look, if all of it is kept in this process; no query.

    None too for an archived agent: :func:`take` says what there is to say.
    """
    found = snapshots.known(look, session)
    return None if found is None or found.agent.archived else _snapshot(found, request_id, subagent)


def is_over(snapshot: resolution.Snapshot) -> bool:
    """Say whether a kept snapshot is no longer so, though nothing was written: something in it has ended since."""
    end = snapshot.agent.next_end()
    return end is not None and end <= clock.now()


def _snapshot(found: snapshots.Found, request_id: str | None, subagent: str | None) -> resolution.Snapshot:
    return resolution.Snapshot(
        catalog=found.catalog,
        agent=found.agent,
        session=found.session,
        request_id=request_id,
        subagent=subagent,
        kind_loadouts=conf.KIND_LOADOUTS,
    )


def _check(*, session: str | None, request_id: str | None, subagent: str | None) -> None:
    problems = [
        errors.Problem(path=path, message=problem)
        for path, value in (("session", session), ("request_id", request_id))
        if value is not None and (problem := sessions.id_problem(value))
    ]
    if subagent is not None and subagent not in agents.KINDS:
        kinds = ", ".join(agents.KINDS)
        problems.append(
            errors.Problem(path="subagent", message=f"{subagent!r} is not a kind of agent: {kinds}.")
        )
    if problems:
        raise errors.Invalid(problems)
