"""Which tools does an MCP client see? (wire.md: MCP, loading on demand)

In two forms. ``dispatch``: the active tools, with ``search_tools`` and ``call_tool`` for all else that the agent could
have; loading changes nothing of it, so it is the only form for clients that keep no session. ``list``: the surface as
it is, with the tools that load others, so that it grows. An agent that could have nothing else gets none of those.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from toolbelt.core import agents, definitions, meta_tools, surface

Form = Literal["dispatch", "list"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """The tools in the order of their names, and a digest: equal lists, equal digests."""

    tools: tuple[definitions.Definition, ...]
    digest: str


def form(loading: agents.McpLoading, *, has_session: bool, may_grow: bool) -> Form:
    """Choose the form for an agent's client; ``may_grow``: its revision of the protocol allows lists that do."""
    return "list" if loading == "list" and has_session and may_grow else "dispatch"


def of(answer: surface.Surface, form: Form) -> ToolList:
    """List the tools of a surface in this form."""
    own = answer.meta_tools
    if own and form == "dispatch":
        own = tuple(meta_tools.DISPATCHING.values())
    tools = tuple(sorted((*answer.tools, *own), key=lambda definition: definition.name))
    digest = hashlib.sha256(b"".join([definition.digest for definition in tools])).hexdigest()
    return ToolList(tools=tools, digest=digest[:32])
