"""Snapshots: the frozen input from which a request of an agent is answered."""

from __future__ import annotations

from toolbelt.core import agents, errors, request_key, sessions
from toolbelt.core.rules import resolution
from toolbelt.store import clock, snapshots, state_probe


def take(key: request_key.RequestKey) -> tuple[resolution.Snapshot, snapshots.StoredState]:
    """Return the snapshot of a request, and the stored state from which it was made.

    Raise errors.NotFound for an unknown agent, errors.Archived for an archived one, and errors.Invalid for malformed
    ids or an unknown kind of subagent.
    """
    _check(key)
    if not key.agent.isprintable():
        # No agent has such a key, and PostgreSQL rejects a NUL.
        raise errors.NotFound("agent", key.agent)
    source = snapshots.find(key.agent, key.session)
    if source.agent.archived:
        raise errors.Archived(key.agent)
    return _snapshot(source, key), source


def cached(probed: state_probe.ProbedState, key: request_key.RequestKey) -> resolution.Snapshot | None:
    """Return the snapshot of a valid request after this probe, or None if this process has not cached all of it.

    Also None for an archived agent: :func:`take` raises the error. Makes no query.
    """
    source = snapshots.cached(probed, key.session)
    return None if source is None or source.agent.archived else _snapshot(source, key)


def has_expired(snapshot: resolution.Snapshot) -> bool:
    """Return whether a cached snapshot is outdated because a grant has expired, or a block has ended, since."""
    ends = [end for end in (snapshot.agent.next_end(), snapshot.catalog.next_end()) if end is not None]
    return bool(ends) and min(ends) <= clock.now()


def _snapshot(source: snapshots.StoredState, key: request_key.RequestKey) -> resolution.Snapshot:
    return snapshots.of(
        source.catalog,
        source.agent,
        session=source.session,
        request_id=key.request_id,
        subagent=key.subagent,
    )


def _check(key: request_key.RequestKey) -> None:
    problems = [
        errors.Problem(path=path, message=problem)
        for path, value in (("session", key.session), ("request_id", key.request_id))
        if value is not None and (problem := sessions.id_problem(value))
    ]
    if key.subagent is not None and key.subagent not in agents.KINDS:
        kinds = ", ".join(agents.KINDS)
        problems.append(
            errors.Problem(path="subagent", message=f"{key.subagent!r} is not a kind of agent: {kinds}.")
        )
    if problems:
        raise errors.Invalid(problems)
