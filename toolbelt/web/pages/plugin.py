"""How is the page of one plugin filled?"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from toolbelt import conf
from toolbelt.control import providers
from toolbelt.core import belts, catalog, connections, errors, reasons, risks
from toolbelt.plugins import info
from toolbelt.runtime import secrets
from toolbelt.web import words
from toolbelt.web.pages import model, plugins, reviews, sections, texts
from toolbelt.web.presenters import access, answers
from toolbelt.web.presenters import plugins as presenters

# Above so many tools, the others are shown when somebody asks for them.
MOST_TOOLS = 100
LONGEST_DESCRIPTION = 240
LONGEST_PROBLEM = 400
# Where control finds something wrong with a connection, and the field that asks for it.
_ASKED_BY = (("upstream.headers", "headers"), ("upstream", "url"))


def page(
    found: providers.Detail,
    live: Iterable[info.PluginInfo],
    *,
    path: str,
    here: str,
    since: datetime | None = None,
    notice: answers.Notice | None = None,
    every_tool: bool = False,
    may_change: bool,
    may_approve: bool,
    may_carry: bool,
    may_see: bool,
    ticked: Collection[str] = (),
    moved: str = "",
    form: presenters.ServerForm | None = None,
) -> presenters.PluginPage:
    """Fill the page; ``form`` is one that was not taken, ``ticked`` and ``moved`` are of a review that was not."""
    one = found.provider
    here_now = {plugin.name: plugin for plugin in live}
    running = {name for name, plugin in here_now.items() if plugin.state != "failed"}
    offered = [tool for tool in one.tools if not tool.retired]
    most = len(offered) if every_tool else MOST_TOOLS
    listing = one.listing
    problems = [*(listing.problems if listing else ()), *_problems_here(here_now.get(one.plugin.name))]
    return presenters.PluginPage(
        plugin=plugins.line(one, running=running, since=since),
        trusted=plugins.trusted(one),
        size=f"{words.about(sum(tool.tokens for tool in offered))} tokens" if offered else "",
        review=reviews.review(found, may_carry=may_carry, ticked=ticked, moved=moved),
        tools=tuple(_tool(found, tool) for tool in offered[:most]),
        more_tools=max(0, len(offered) - most),
        every_url=f"{path}?all=yes#tools",
        reached=_reached(one, form, may_change) if one.connection is not None and may_see else None,
        facts=tuple(_facts(one, here_now.get(one.plugin.name))),
        problems=tuple(texts.visible(words.cut(_said(problem), LONGEST_PROBLEM)) for problem in problems),
        stderr=texts.text(secrets.mask(listing.stderr)) if listing and listing.stderr and may_see else None,
        asking=plugins.asking([one], since, path, one.plugin.name),
        notice=notice,
        may_change=may_change,
        may_approve=may_approve,
        may_see=may_see,
        here=here,
    )


def form(typed: Mapping[str, Any], problems: Iterable[errors.Problem] = ()) -> presenters.ServerForm:
    """Fill the form for a server with what somebody typed, and with what control finds wrong with it."""
    wrong: dict[str, list[str]] = {}
    for problem in problems:
        field = _field(problem.path, str(typed.get("name", "")))
        message = problem.message
        if field == "headers":
            name = problem.path.rpartition("headers.")[2]
            message = message if not name or name in message else f"{name}: {message}"
        wrong.setdefault(field, []).append(message)
    return presenters.ServerForm(
        **{field: str(typed.get(field, "")) for field in ("name", "namespace", "title", "url", "headers")},
        seen=str(typed.get("was", "")),
        problems={field: " ".join(dict.fromkeys(said)) for field, said in wrong.items()},
    )


def add_command(connection: connections.Connection | None = None, name: str = "NAME") -> str:
    """Give the line that adds a server by command."""
    if connection is None or not connection.command:
        return f"{conf.COMMAND} mcp add files --command npx -y @modelcontextprotocol/server-filesystem ./docs"
    options = [f"--env={key}={value}" for key, value in connection.env.items()]
    options += [f"--cwd={connection.cwd}"] if connection.cwd else []
    options += [f"--timeout={connection.timeout}"] if connection.timeout != connections.TIMEOUT else []
    said = shlex.join(["mcp", "add", name, *options, "--command", connection.command, *connection.args])
    return f"{conf.COMMAND} {said}"


def _field(path: str, name: str) -> str:
    """Name the field that asks for what is at this path; empty for what is wrong with no field alone."""
    inside = path.removeprefix(f"plugins.{name}").removeprefix(".")
    if not inside:
        return "name" if path else ""
    return next((field for beginning, field in _ASKED_BY if inside.startswith(beginning)), inside)


def _tool(found: providers.Detail, tool: catalog.Tool) -> presenters.ToolLine:
    prefix, name = model.split(tool.key)
    closed = found.closed.get(tool.key)
    having = found.users.get(tool.key, ())
    return presenters.ToolLine(
        prefix=prefix,
        name=name,
        description=texts.visible(words.cut(tool.description or tool.title, LONGEST_DESCRIPTION)),
        risk=access.Risk(word=risks.of(tool), stated=sections.states_risk(tool)),
        tokens=words.number(tool.tokens),
        state=closed.state if closed is not None else "active" if having else "dormant",
        word=_word(closed is not None, having),
        users=reasons.in_words(closed) if closed is not None else words.listing(having),
    )


def _word(is_closed: bool, having: Collection[str]) -> str:
    if is_closed:
        return "Nobody"
    count = len(having)
    return f"{count} agent{'' if count == 1 else 's'}" if count else "No agent"


def _reached(
    one: providers.Provider, form: presenters.ServerForm | None, may_change: bool
) -> presenters.Reached | None:
    connection = one.connection
    if connection is None:
        return None
    if may_change and form is None and connection.url:
        form = presenters.ServerForm(
            url=connection.url,
            headers="\n".join(f"{name}: {value}" for name, value in connection.headers.items()),
            seen=json.dumps(belts.entry("plugin", one.plugin).get("upstream", {})),
        )
    return presenters.Reached(
        kind=plugins.kind(one),
        facts=tuple(_of_connection(connection)),
        form=form if connection.url else None,
        command=add_command(connection, one.plugin.name) if connection.command else "",
    )


def _of_connection(connection: connections.Connection) -> Iterator[presenters.Fact]:
    if connection.command:
        yield _fact("Command", connection.command, code=True)
        if connection.args:
            yield _fact("Arguments", shlex.join(connection.args), code=True)
        for name, value in connection.env.items():
            yield _fact("Variable", f"{name}={value}", code=True)
        if connection.cwd:
            yield _fact("Directory", connection.cwd, code=True)
    else:
        yield _fact("URL", connection.url, code=True)
        for name, value in connection.headers.items():
            yield _fact("Header", f"{name}: {value}", code=True)
    yield _fact("Time limit", f"{connection.timeout} s for each answer")


def _facts(one: providers.Provider, here: info.PluginInfo | None) -> Iterator[presenters.Fact]:
    plugin, listing = one.plugin, one.listing
    yield _fact(
        "Namespace", f"{plugin.namespace}__" if plugin.namespace else "none", code=bool(plugin.namespace)
    )
    if plugin.category:
        yield _fact("Category", plugin.category)
    if here is not None and here.source:
        yield _fact("Code", here.source, code=True)
    if one.connection is None:
        return
    if listing is None:
        yield _fact("Last asked", "never")
        return
    if listing.server:
        yield _fact("Calls itself", listing.server)
    if listing.protocol:
        yield _fact("Protocol", f"MCP {listing.protocol}")
    yield _fact("Last answer", words.moment(listing.answered).words if listing.answered else "never")
    if listing.answered is None or listing.asked > listing.answered:
        yield _fact("Last asked", f"{words.moment(listing.asked).words}, without an answer")
    if listing.answered:
        yield _fact("It listed", words.tools(listing.tools))


def _fact(label: str, text: str, *, code: bool = False) -> presenters.Fact:
    return presenters.Fact(label=label, parts=texts.pieces(text), code=code)


def _problems_here(here: info.PluginInfo | None) -> Iterable[errors.Problem]:
    return here.problems if here is not None else ()


def _said(problem: errors.Problem) -> str:
    tool = problem.path.removeprefix("tools.")
    return problem.message if not tool or tool in problem.message else f"{tool}: {problem.message}"
