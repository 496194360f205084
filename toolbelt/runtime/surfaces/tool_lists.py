"""The tool lists of MCP clients, cached as bytes like surfaces.

One probe of the database tells whether a cached list is current. A list is built once for each state of agent, catalog
and session. Pages, the request's id and the fields of a protocol revision are added around it.
"""

from __future__ import annotations

import asyncio
import bisect
import functools
import hashlib
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from toolbelt.core import (
    agents,
    catalog,
    definitions,
    limits,
    meta_tools,
    policy,
    request_key,
    schema,
    surface,
    tool_lists,
)
from toolbelt.formats import mcp
from toolbelt.runtime import credentials, surfaces
from toolbelt.runtime.records import context_use
from toolbelt.runtime.surfaces import byte_cache, prompt_and_resource_lists, request_contexts

# The size of the cache. A list of a hundred tools has about 60,000 bytes.
MAX_BYTES = 64 << 20
PAGE_SIZE = limits.MCP_PAGE_SIZE

Form = tool_lists.Form


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """A client's tools, each as JSON, ordered by name.

    ``digest`` identifies the list's content. ``instructions`` is its policy, most important sections first, because
    some clients truncate it. ``framed`` caches the first page in each of the envelopes in which it is sent.
    ``for_apps`` are the tools for apps only, by name. ``callable`` are, for a list that never changes, the tools that
    may be called now, with the digests of their definitions.
    ``non_tools`` are the prompts, resources and resource templates of the same agent and session. ``tokens`` is what
    the list costs a model.
    """

    form: Form
    digest: str
    names: tuple[str, ...]
    tools: tuple[bytes, ...]
    instructions: str
    for_apps: tuple[tuple[str, bytes], ...] = ()
    callable: Mapping[str, bytes] = field(default_factory=dict)
    non_tools: prompt_and_resource_lists.NonToolLists = prompt_and_resource_lists.EMPTY
    tokens: context_use.Tokens = context_use.NOT_COUNTED
    framed: dict[Hashable, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_constant(self) -> bool:
        """Return whether the list of its client never changes."""
        return self.form in tool_lists.CONSTANT

    @property
    def size(self) -> int:
        """Return the size in bytes, for the cache."""
        # Includes one framed first page.
        tools = sum(map(len, self.tools)) + sum(map(len, self.tools[:PAGE_SIZE]))
        tools += sum(len(tool) for _, tool in self.for_apps)
        return tools + self.non_tools.size + len(self.instructions)

    @property
    def policy_digest(self) -> str:
        """Return the digest of its policy."""
        return hashlib.sha256(self.instructions.encode()).hexdigest()[:16]

    def page(self, after: str | None, *, for_apps: bool = False) -> tuple[bytes, str | None]:
        """Return the page of tools after this name (None: the first page) as a JSON array, and its last name if there
        are more pages. ``for_apps``: for a client that also gets the tools for apps only.

        A name that is no longer listed still works as a position, so a client that pages through a changing list never
        sees a tool twice and never misses one.
        """
        names, tools = self.names, self.tools
        if for_apps and self.for_apps:
            names, tools = zip(*sorted((*zip(names, tools, strict=True), *self.for_apps)), strict=True)
        start = 0 if after is None else bisect.bisect_right(names, after)
        end = start + PAGE_SIZE
        array = b"[" + b",".join(tools[start:end]) + b"]"
        return array, names[end - 1] if end < len(names) else None


class ListAnswer(NamedTuple):
    """A tool list and its bearer. ``is_stale``: this is the last known list, because the database is unavailable.

    ``context`` is the request's context, if the list was answered on the event loop.
    """

    bearer: credentials.Bearer
    tools: ToolList
    is_stale: bool = False
    context: request_contexts.RequestContext | None = None


class ToolLists:
    """The lists that this process has cached. For one event loop."""

    def __init__(self, contexts: request_contexts.RequestContexts) -> None:
        self._contexts = contexts
        self._lists: byte_cache.ByteCache[ToolList] = byte_cache.ByteCache(MAX_BYTES)

    async def ask(
        self,
        token: str,
        key: request_key.RequestKey,
        *,
        may_grow: bool,
        loading: agents.McpLoading | None = None,
    ) -> ListAnswer | None:
        """Return the list, if it is cached and the token is valid for it. Uses one query.

        ``may_grow``: the client's protocol revision allows lists that grow by loading. ``loading`` is how this client
        loads; None: as the agent's clients do.
        """
        context = await self._contexts.of(token, key)
        return None if context is None else await self._list(context, key.session, may_grow, loading)

    async def last_known(
        self,
        token: str,
        key: request_key.RequestKey,
        *,
        may_grow: bool,
        loading: agents.McpLoading | None = None,
    ) -> ListAnswer | None:
        """Return the last known list, marked as stale, if the database is unavailable and there is one."""
        context = self._contexts.last_known(token, key) if self._contexts.is_offline else None
        if context is None:
            return None
        await asyncio.to_thread(surfaces.get_or_build, context.snapshot, context.probed.state.agent_stamp)
        answer = await self._list(context, key.session, may_grow, loading)
        return None if answer is None else answer._replace(is_stale=True)

    async def try_database(self, query: Callable[[], Awaitable[ListAnswer]]) -> ListAnswer | None:
        """Run a fallback query. Return None if the database is unavailable."""
        return await self._contexts.try_database(query)

    async def _list(
        self,
        context: request_contexts.RequestContext,
        session: str | None,
        may_grow: bool,
        loading: agents.McpLoading | None,
    ) -> ListAnswer | None:
        form = _form(loading or context.snapshot.agent.mcp_loading, session, may_grow)
        cache_key = (context.cache_key, form)
        tools = self._lists.get(cache_key)
        if tools is None:
            cached_surface = surfaces.cached(context.snapshot, context.cache_key[1])
            if cached_surface is None:
                return None
            tools = await self._lists.get_or_compute(cache_key, functools.partial(of, cached_surface, form))
        return ListAnswer(context.bearer, tools, context=context)


def ask(key: request_key.RequestKey, *, may_grow: bool, loading: agents.McpLoading | None = None) -> ToolList:
    """Return the list of an agent's client, in a thread that may block. Raise errors.NotFound or errors.Invalid."""
    answer = surfaces.of(key)
    loading = loading or answer.resolution.context.agent.mcp_loading
    return of(answer, _form(loading, key.session, may_grow))


@catalog.derived
def _encoded(stored: catalog.Catalog) -> dict[bytes, bytes]:
    """Return the JSON of the tools that were listed so far, by the digests of their definitions."""
    return {}


def of(answer: surface.Surface, form: Form) -> ToolList:
    """Return the list of a surface.

    The JSON of each tool is cached with the catalog, so a flip only encodes new tools.
    """
    listed = tool_lists.of(answer, form)
    encoded = _encoded(answer.resolution.context.catalog)
    all_tools = (*listed.tools, *listed.for_apps)
    missing = [definition for definition in all_tools if definition.digest not in encoded]
    if missing:
        rendered = {tool["name"]: tool for tool in mcp.render(_document(missing))["tools"]}
        for definition in missing:
            encoded[definition.digest] = schema.canonical(rendered[definition.name]).encode()
    return ToolList(
        form=form,
        digest=listed.digest,
        names=tuple([definition.name for definition in listed.tools]),
        tools=tuple([encoded[definition.digest] for definition in listed.tools]),
        instructions=_instructions(answer.policy, listed),
        for_apps=tuple([(definition.name, encoded[definition.digest]) for definition in listed.for_apps]),
        callable=listed.callable,
        non_tools=prompt_and_resource_lists.of(answer.resolution),
        tokens=context_use.count(answer, listed.tools),
    )


def _instructions(built: policy.Policy, listed: tool_lists.ToolList) -> str:
    """Return the policy by importance, followed by the loadable toolkits if ``load_tools`` is listed."""
    may_load = any(definition.name == meta_tools.LOAD for definition in listed.tools)
    return "\n\n".join(filter(None, (policy.text_by_importance(built), built.loadable if may_load else "")))


def _form(loading: agents.McpLoading, session: str | None, may_grow: bool) -> Form:
    return tool_lists.form(loading, has_session=session is not None, may_grow=may_grow)


def _document(tools: Iterable[definitions.Definition]) -> Mapping[str, Any]:
    return {
        "tools": [definition.document() for definition in tools],
        "tool_choice": "auto",
        "directive": None,
        "policy": {"text": ""},
    }
