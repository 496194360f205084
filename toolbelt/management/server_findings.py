"""Findings of `manage.py doctor` about plugins and upstream servers, with what this command finds by asking them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from toolbelt import locations
from toolbelt.control.doctor import findings
from toolbelt.control.doctor import plugins as stored_findings
from toolbelt.control.servers import states
from toolbelt.runtime import plugins, process_problems
from toolbelt.runtime.upstream import server_lists


def examine(*, ask: bool = True) -> Iterator[findings.Finding]:
    """Yield the findings; ``ask`` connects to each server that is on."""
    # Only then do plugins have all of their tools. A failure here is not that of a server, and not recorded.
    plugins.registry().initialize_sync()
    all_states = states.load(runnable=plugins.runnable())
    problems = process_problems.find()
    yield from stored_findings.examine(all_states, problems)
    servers = [
        state for state in all_states if state.plugin.upstream and state.state not in ("off", "blocked")
    ]
    if servers and importlib.util.find_spec("mcp") is None:
        yield findings.Finding(
            code="server-client",
            message=f"There are {len(servers)} upstream servers, but the client for them is not installed.",
            way_out=f"Run `pip install '{locations.DISTRIBUTION}[server]'`.",
        )
        return
    # This command cannot connect to the others, whatever the servers of the installation can.
    unreachable = {problem.subject for problem in problems}
    names = [state.plugin.name for state in servers if state.plugin.name not in unreachable]
    if not (ask and names):
        return
    known = {
        state.plugin.name
        for state in servers
        if state.state in ("failed", "not-responding", "sign-in-needed")
    }
    answers = server_lists.refresh(names, lambda name, answer: answer)
    for name, answer in answers.items():
        if answer.error and name not in known:
            yield stored_findings.not_responding_here(name, answer.error)
