"""How many calls wait for approval, for those who may decide about them."""

from __future__ import annotations

from collections.abc import Mapping

from toolbelt.control.agents import call_approvals
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.web.kit import http


def by_agent(request: http.Request) -> Mapping[str, int]:
    """Return how many calls the user may decide about, by agent, read once for a request."""
    counts: Mapping[str, int] | None = getattr(request, "waiting_calls", None)
    if counts is None:
        counts = request.waiting_calls = _by_agent(request)
    return counts


def _by_agent(request: http.Request) -> Mapping[str, int]:
    # The counts of the frame are read anyway, and mostly nothing waits.
    if not (getattr(request, "counts", None) or queries.count()).waiting:
        return {}
    agents = rights.decidable_agents(request.user)
    return {} if agents is not None and not agents else call_approvals.counts(agents)


def count(request: http.Request) -> int:
    """Return how many calls the user may decide about."""
    return sum(by_agent(request).values())
