"""What does an MCP client get when it lists its tools? Bytes that are kept, as those of surfaces are.

One look at the database says whether what is kept still holds. A list is made once for each state of agent, catalog and
session, whoever asks; pages, the request's id and what a revision of the protocol adds are put around it.
"""

from __future__ import annotations

import asyncio
import bisect
import functools
import hashlib
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from toolbelt.adapters import mcp
from toolbelt.core import agents, definitions, policy, schema, surface, tool_lists
from toolbelt.runtime import access, kept, standings, surfaces

# How many bytes of lists to keep; one of a hundred tools has some 60,000.
MOST_BYTES = 64 << 20
# Clients are known that read the first page and no more: it should be all that a model can bear anyway.
ON_A_PAGE = 500

Form = tool_lists.Form


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """The tools that a client gets to see, as JSON each, in the order of their names.

    ``digest`` tells it from other lists. ``instructions`` are the policy that goes with it, the most important first,
    since some clients cut it. ``framed`` is the first page as whoever sends it put it down, in each of the frames that
    it is sent in.
    """

    form: Form
    digest: str
    names: tuple[str, ...]
    tools: tuple[bytes, ...]
    instructions: str
    framed: dict[Hashable, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Say how many bytes are kept."""
        # The first page in a frame, too.
        return sum(map(len, self.tools)) + sum(map(len, self.tools[:ON_A_PAGE])) + len(self.instructions)

    @property
    def policy_digest(self) -> str:
        """Return what tells its policy from others."""
        return hashlib.sha256(self.instructions.encode()).hexdigest()[:16]

    def page(self, after: str | None) -> tuple[bytes, str | None]:
        """Give the tools after this name (None: from the beginning) as a JSON array, and the last name before the next
        page, if there is one.

        A name that is not there any more marks a place all the same: no tool is told twice, or left out, by a client
        that walks the pages while the list changes.
        """
        begin = 0 if after is None else bisect.bisect_right(self.names, after)
        end = begin + ON_A_PAGE
        array = b"[" + b",".join(self.tools[begin:end]) + b"]"
        return array, self.names[end - 1] if end < len(self.names) else None


class Found(NamedTuple):
    """Who asks, and the list that is theirs now; ``is_stale``: the last that is known, which cannot be checked now."""

    bearer: access.Bearer
    tools: ToolList
    is_stale: bool = False


class Lists:
    """The lists that are ready in this process. For one event loop."""

    def __init__(self, stand: standings.Standings) -> None:
        self._standings = stand
        self._kept: kept.Kept[ToolList] = kept.Kept(MOST_BYTES)

    async def ask(self, token: str, agent: str, session: str | None, *, may_grow: bool) -> Found | None:
        """Give the list, if it is ready, and if whoever sent the token may have it. One query, which reads.

        ``may_grow``: the client's revision of the protocol allows lists that grow by loading.
        """
        standing = await self._standings.of(standings.Asked(token, agent, session))
        return None if standing is None else await self._list(standing, session, may_grow)

    async def last_known(
        self, token: str, agent: str, session: str | None, *, may_grow: bool
    ) -> Found | None:
        """Return the last known list, marked stale, where the database cannot be looked at; None without one."""
        asked = standings.Asked(token, agent, session)
        standing = self._standings.last_known(asked) if self._standings.is_blind else None
        if standing is None:
            return None
        await asyncio.to_thread(surfaces.resolved, standing.snapshot, standing.seen.look.agent_stamp)
        found = await self._list(standing, session, may_grow)
        return None if found is None else found._replace(is_stale=True)

    async def unless_away(self, ask: Callable[[], Awaitable[Found]]) -> Found | None:
        """Ask the database another way; None where it is away."""
        return await self._standings.unless_away(ask)

    async def _list(self, standing: standings.Standing, session: str | None, may_grow: bool) -> Found | None:
        form = _form(standing.snapshot.agent.mcp_loading, session, may_grow)
        place = (standing.place, form)
        found = self._kept.get(place)
        if found is None:
            known = surfaces.known(standing.snapshot, standing.place[1])
            if known is None:
                return None
            found = await self._kept.made(place, functools.partial(of, known, form))
        return Found(standing.bearer, found)


def ask(agent: str, session: str | None, *, may_grow: bool) -> ToolList:
    """Give the list of an agent's client, in a thread that may block. Raises errors.NotFound and errors.Invalid."""
    answer = surfaces.ask(agent, session)
    loading = answer.resolution.standing.agent.mcp_loading
    return of(answer, _form(loading, session, may_grow))


def of(answer: surface.Surface, form: Form) -> ToolList:
    """Write the list of a surface. What is written of a tool is kept with the catalog: a flip costs what is new."""
    listed = tool_lists.of(answer, form)
    written: dict[bytes, bytes] = answer.resolution.standing.catalog.derived.setdefault("mcp tools", {})
    missing = [definition for definition in listed.tools if definition.digest not in written]
    if missing:
        rendered = {tool["name"]: tool for tool in mcp.render(_document(missing))["tools"]}
        for definition in missing:
            written[definition.digest] = schema.canonical(rendered[definition.name]).encode()
    return ToolList(
        form=form,
        digest=listed.digest,
        names=tuple([definition.name for definition in listed.tools]),
        tools=tuple([written[definition.digest] for definition in listed.tools]),
        instructions=policy.most_important_first(answer.policy),
    )


def _form(loading: agents.McpLoading, session: str | None, may_grow: bool) -> Form:
    return tool_lists.form(loading, has_session=session is not None, may_grow=may_grow)


def _document(given: Iterable[definitions.Definition]) -> Mapping[str, Any]:
    return {
        "tools": [definition.document() for definition in given],
        "tool_choice": "auto",
        "directive": None,
        "policy": {"text": ""},
    }
