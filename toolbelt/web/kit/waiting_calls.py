"""How many calls wait for approval, for those who may decide about them."""

from __future__ import annotations

from collections.abc import Mapping

from toolbelt.control.agents import call_approvals
from toolbelt.control.people import rights
from toolbelt.web.kit import http


def by_agent(request: http.Request) -> Mapping[str, int]:
    """Return how many calls the user may decide about, by agent, read once for a request."""
    counts: Mapping[str, int] | None = getattr(request, "waiting_calls", None)
    if counts is None:
        agents = rights.decidable_agents(request.user)
        is_for_none = agents is not None and not agents
        counts = request.waiting_calls = {} if is_for_none else call_approvals.counts(agents)
    return counts


def count(request: http.Request) -> int:
    """Return how many calls the user may decide about."""
    return sum(by_agent(request).values())
