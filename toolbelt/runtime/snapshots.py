"""Snapshots: the frozen input from which a request of an agent is answered."""

from __future__ import annotations

from toolbelt.core import agents, errors, resolution, sessions
from toolbelt.store import clock, snapshots, state_probe


def take(
    agent: str, session: str | None = None, request_id: str | None = None, subagent: str | None = None
) -> tuple[resolution.Snapshot, snapshots.StoredState]:
    """Return the snapshot of a request, and the stored state from which it was made.

    Raise errors.NotFound for an unknown agent, errors.Archived for an archived one, and errors.Invalid for malformed
    ids or an unknown kind of subagent.
    """
    _check(session=session, request_id=request_id, subagent=subagent)
    if not agent.isprintable():
        # No agent has such a key, and PostgreSQL rejects a NUL.
        raise errors.NotFound("agent", agent)
    source = snapshots.find(agent, session)
    if source.agent.archived:
        raise errors.Archived(agent)
    return _snapshot(source, request_id, subagent), source


def cached(
    probed: state_probe.ProbedState,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
) -> resolution.Snapshot | None:
    """Return the snapshot of a valid request after this probe, or None if this process has not cached all of it.

    Also None for an archived agent: :func:`take` raises the error. Makes no query.
    """
    source = snapshots.cached(probed, session)
    return None if source is None or source.agent.archived else _snapshot(source, request_id, subagent)


def has_expired(snapshot: resolution.Snapshot) -> bool:
    """Return whether a cached snapshot is outdated because a grant in it has expired since."""
    end = snapshot.agent.next_end()
    return end is not None and end <= clock.now()


def _snapshot(
    source: snapshots.StoredState, request_id: str | None, subagent: str | None
) -> resolution.Snapshot:
    return snapshots.of(
        source.catalog, source.agent, session=source.session, request_id=request_id, subagent=subagent
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
