"""The tools that an MCP client sees (docs/how-to/connect-an-mcp-client.md).

There are four forms. ``dispatch``: the active tools, with ``search_tools`` and ``call_tool`` for everything else that
the agent could have; loading does not change the list, so this is the only form for clients without a session.
``list``: the surface with its meta-tools, so that the list grows. An agent that has nothing to load, unload or call
gets no meta-tools in these two forms.
``start`` and ``constant`` are for clients whose list must never change: what is granted later is called through
``call_tool``, so they always have it. ``start`` is the list with which a session begins, and ``constant`` the one of
clients without a session, which has no other tools.
Tools that the agent's own program runs are in no form: an MCP client could not call them. Tools for apps only are
listed beside all, for clients that show the screens of servers (MCP Apps).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolbelt.core import agents, definitions, meta_tools, surface

Form = Literal["dispatch", "list", "start", "constant"]
# The forms whose lists never change.
CONSTANT: frozenset[Form] = frozenset({"start", "constant"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """The tools in the order of their names, those for apps only, and a digest that equal lists share.

    ``callable`` are the tools that may be called now, with the digests of their definitions, if the list does not show
    that, because it never changes.
    """

    tools: tuple[definitions.Definition, ...]
    for_apps: tuple[definitions.Definition, ...]
    digest: str
    callable: Mapping[str, bytes] = field(default_factory=dict)


def form(loading: agents.McpLoading, *, has_session: bool, may_grow: bool) -> Form:
    """Return the form for an agent's client; ``may_grow``: its protocol revision supports changing lists."""
    if loading == "constant":
        return "start" if may_grow else "constant"
    return "list" if loading == "list" and has_session and may_grow else "dispatch"


def of(answer: surface.Surface, form: Form) -> ToolList:
    """Return the tools of a surface in this form."""
    meta_tools_ = answer.meta_tools
    if form != "list":
        has_any = form in CONSTANT or _may_dispatch(answer)
        meta_tools_ = tuple(meta_tools.DISPATCHING.values()) if has_any else ()
    stored = answer.resolution.context.catalog
    run_here = [tool for tool in answer.tools if stored.runner(stored.tools[tool.name]) != "client"]
    listed = () if form == "constant" else run_here
    tools = tuple(sorted((*listed, *meta_tools_), key=lambda definition: definition.name))
    for_apps = tuple(
        [definitions.of(stored, tool.key) for tool in answer.resolution.non_tools_of("tool")]
        if answer.resolution.others
        else ()
    )
    digest = hashlib.sha256(b"".join([definition.digest for definition in (*tools, *for_apps)])).hexdigest()
    return ToolList(
        tools=tools,
        for_apps=for_apps,
        digest=digest[:32],
        callable={tool.name: tool.digest for tool in run_here} if form in CONSTANT else {},
    )


def _may_dispatch(answer: surface.Surface) -> bool:
    """Return whether ``call_tool`` can do something that the listed tools cannot: call a tool that is not active, or
    load or unload in the session.
    """
    stored = answer.resolution.context.catalog
    return bool(answer.meta_tools) or any(
        stored.runner(stored.tools[tool]) != "client" for tool in answer.resolution.offered()
    )
