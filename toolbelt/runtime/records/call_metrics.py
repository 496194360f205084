"""The metrics of calls for Prometheus, by agent, tool and outcome."""

from __future__ import annotations

import functools

import prometheus_client

from toolbelt.core import meta_tools

# Pairs of agents and tools with metrics of their own; those that come later share one, so that memory stays bounded.
MAX_LABELS = 2_000
OTHER = "other"
# The boundaries that OpenTelemetry's conventions for MCP recommend, in seconds.
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

_calls = prometheus_client.Counter(
    "toolbelt_tool_calls", "Calls of tools, by how they ended.", ["agent", "tool", "outcome"]
)
_seconds = prometheus_client.Histogram(
    "toolbelt_tool_call_seconds", "How long calls of tools took.", ["tool"], buckets=BUCKETS
)
_labels: set[tuple[str, str]] = set()


def count(agent: str, tool: str, outcome: str, seconds: float, *, is_known: bool) -> None:
    """Count a call that has ended; ``is_known``: the catalog has the tool."""
    # A name that is no tool's was made up by a model: there may be any number of them.
    name = tool if is_known or tool in meta_tools.SCHEMAS else OTHER
    counter, histogram = _metrics(agent, name, outcome)
    counter.inc()
    histogram.observe(seconds)


@functools.lru_cache(4 * MAX_LABELS)
def _metrics(
    agent: str, tool: str, outcome: str
) -> tuple[prometheus_client.Counter, prometheus_client.Histogram]:
    if (agent, tool) not in _labels:
        if len(_labels) >= MAX_LABELS:
            agent = tool = OTHER
        _labels.add((agent, tool))
    return _calls.labels(agent=agent, tool=tool, outcome=outcome), _seconds.labels(tool=tool)
