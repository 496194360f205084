"""Checks of plugins and upstream servers, by the state that is stored and by what the running servers report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from toolbelt import conf
from toolbelt.control.doctor import findings
from toolbelt.control.servers import states
from toolbelt.core import texts

MAX_NAMED = 3


def examine(
    all_states: Sequence[states.PluginState], problems_here: Sequence[states.Problem] | None = None
) -> Iterator[findings.Finding]:
    """Yield the findings. ``problems_here`` are those of this process. They count only if no server runs, apart from
    those of a plugin's code, which is the same everywhere and may not be in use in a server yet.
    """
    servers = states.servers()
    seen: dict[states.Problem, list[str]] = {}
    for process in servers:
        for problem in process.problems:
            seen.setdefault(problem, []).append(process.name)
    for problem in problems_here or ():
        if not servers or problem.code == "plugin-tools":
            seen.setdefault(problem, [])
    for problem, processes in seen.items():
        yield _of_process(problem, processes)
    for state in all_states:
        yield from _of_state(state)


def _of_process(problem: states.Problem, processes: Collection[str]) -> findings.Finding:
    """Return the finding about what keeps a plugin or server from running in these processes."""
    seen = f" (seen by {', '.join(processes)})" if processes else ""
    name, what = problem.subject, problem.what
    match problem.code:
        case "variable":
            return findings.Finding(
                code="server-variable",
                message=f"The server {name} needs the variable {what}, which is not set{seen}.",
                way_out=f"Set {what} in the environment of Toolbelt's servers, or in the settings file, and"
                " restart them.",
            )
        case "directory":
            return findings.Finding(
                code="server-command",
                message=f"The directory of the server {name}, {what}, does not exist{seen}.",
                way_out=f"Create it, or correct `cwd` in the server's entry with `{conf.COMMAND} belt import`.",
            )
        case "command":
            return findings.Finding(
                code="server-command",
                message=f"The command of the server {name} was not found: {what}{seen}.",
                way_out="Install it, or correct its path."
                if Path(what).is_absolute()
                else "Install it, or write its full path. Toolbelt's servers look for it on their own PATH.",
            )
        case "plugin-tools":
            return findings.Finding(
                code="plugin-tools",
                message=f"{what}{seen}",
                way_out=f"Correct the plugin {name}, check it with `{conf.COMMAND} plugins check`, and restart the"
                " servers.",
            )
    return findings.Finding(
        code="plugin",
        message=f"{what}{seen}",
        way_out=f"Correct {conf.PLUGINS_FILE or 'the plugin'}, check it with `{conf.COMMAND} plugins check`, and"
        " restart the servers.",
    )


def _of_state(state: states.PluginState) -> Iterator[findings.Finding]:
    name = state.plugin.name
    is_server = bool(state.plugin.upstream)
    subject = f"The {'server' if is_server else 'plugin'} {name}"
    seen = ""
    if state.seen is not None:
        seen = f" (seen{f' by {state.seen_by}' if state.seen_by else ''} at {state.seen:%Y-%m-%d %H:%M} UTC)"
    error = state.error.rstrip(".") or "no error was recorded"
    if state.state == "failed":
        yield findings.Finding(
            code="server-failed" if is_server else "plugin-failed",
            message=f"{subject} has failed: {error}{seen}.",
            way_out=_way_out(name)
            if is_server
            else f"Correct it, then run `{conf.COMMAND} plugins enable {name}`; or turn it off in the dashboard.",
        )
    elif state.state == "sign-in-needed":
        yield findings.Finding(
            code="server-sign-in",
            message=f"{subject} needs a sign-in: {error}{seen}.",
            way_out="Press Sign in on its page in the dashboard; or turn it off there.",
        )
    elif state.state == "not-responding":
        yield findings.Finding(
            code="server-not-responding",
            message=f"{subject} does not respond: {error}{seen}.",
            way_out=_way_out(name),
        )
    elif state.state == "not-running":
        tools = state.not_running
        yield findings.Finding(
            code="not-running",
            message=f"No process can run {texts.counted(len(tools), 'tool')} of the plugin {name}:"
            f" {texts.listing(tools, MAX_NAMED)}.",
            way_out="List the plugin in the file that TOOLBELT_PLUGINS_FILE names, and restart the servers; or turn it"
            " off in the dashboard.",
        )
    if state.is_empty:
        yield findings.Finding(
            code="server-empty",
            message=f"{subject} answers, but lists no tool.",
            way_out="Check its configuration and its permissions. Some servers list nothing in the newest revision of"
            " MCP: set the revision of its connection to 2025-11-25.",
            level="note",
        )
    if state.to_review:
        yield findings.Finding(
            code="server-review",
            message=f"{subject} has {texts.counted(state.to_review, 'tool')} to review.",
            way_out="Review them on the page Review"
            + (f", or run `{conf.COMMAND} mcp review {name}`." if state.plugin.runner != "code" else "."),
            level="note",
        )


def not_responding_here(name: str, error: str) -> findings.Finding:
    """Return the finding about a server that this command could not reach, though no process has noticed."""
    return findings.Finding(
        code="server-not-responding",
        message=f"The server {name} does not respond: {error.rstrip('.')} (seen by this command).",
        way_out=_way_out(name),
    )


def _way_out(name: str) -> str:
    return (
        f"Start it or correct its connection, then run `{conf.COMMAND} mcp refresh {name}`; or turn it off in the"
        " dashboard."
    )
