"""What models were told whose lists of tools never change, and the lists with which their sessions began.

Such a client is never sent another list, because its program would put that before everything that the model has said.
Its model reads of changes in the next result instead, by name. What it was told is remembered in the process, as a best
effort; another process knows the list with which the session began. Calls of removed tools are refused in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from toolbelt.core import caches, texts
from toolbelt.mcp import list_changes, request_head
from toolbelt.runtime import threads
from toolbelt.runtime.surfaces import first_lists, tool_lists

# The most clients and lists that a process remembers.
MAX_CLIENTS = 4096
MAX_LISTS = 64
# The most names of a kind in a notice.
MAX_NAMED = 20


@dataclass(frozen=True, slots=True)
class _Told:
    """The tools that a model was told it may call, with their definitions' digests; every one that it ever was told
    of; and the digest of the policy.
    """

    tools: Mapping[str, str]
    ever: frozenset[str]
    policy: str


class ConstantLists:
    """What the models of this process's clients were told."""

    def __init__(self) -> None:
        self._told: caches.LruCache[Hashable, _Told] = caches.LruCache(MAX_CLIENTS)
        self._begun: caches.LruCache[str, first_lists.FirstList] = caches.LruCache(MAX_LISTS)

    async def begin(self, head: request_head.RequestHead, tools: tool_lists.ToolList) -> None:
        """Keep the list with which a session begins."""
        key = first_lists.key(head.agent, tools.digest)
        begun = await threads.run(first_lists.put, key, tools)
        self._begun.put(key, begun)
        self._record(head, tools)

    async def begun(self, head: request_head.RequestHead) -> first_lists.FirstList | None:
        """Return the list with which the client's session began; None if it is no longer kept."""
        digest = list_changes.digest_in(head.client_session)
        if not digest:
            return None
        key = first_lists.key(head.agent, digest)
        begun = self._begun.get(key)
        if begun is None and (begun := await threads.run(first_lists.get, key)) is not None:
            self._begun.put(key, begun)
        return begun

    def record(self, head: request_head.RequestHead, tools: tool_lists.ToolList) -> None:
        """Record what a client may call when it first asks, unless its model was told something since."""
        if head.client_session or self._told.get(_client(head)) is not None:
            return
        self._record(head, tools)

    async def told(self, head: request_head.RequestHead) -> Collection[str]:
        """Return every tool that the client's model was told of."""
        told = await self._last(head)
        return told.ever if told is not None else ()

    async def notice(self, head: request_head.RequestHead, now: tool_lists.ToolList) -> str:
        """Return a sentence about what changed since the last one, once. Empty if nothing did."""
        last = await self._last(head)
        self._record(head, now, last)
        if last is None:
            return ""
        callable_ = {name: digest.hex() for name, digest in now.callable.items()}
        kinds = {
            "you may also call": callable_.keys() - last.tools.keys(),
            "no longer available": last.tools.keys() - callable_.keys(),
            "other definitions": {
                name for name, digest in callable_.items() if last.tools.get(name, digest) != digest
            },
        }
        parts = [
            f"{kind}: {texts.listing(sorted(names), MAX_NAMED)}" for kind, names in kinds.items() if names
        ]
        if last.policy != now.policy_digest:
            parts.append("the policy: read toolbelt://policy")
        if not parts:
            return ""
        how = " Call what is not in your list with call_tool; search_tools has the definitions."
        return f"Since your last call: {'; '.join(parts)}.{how if any(kinds.values()) else ''}"

    def forget(self, head: request_head.RequestHead) -> None:
        """Forget a client that ends its session."""
        self._told.pop(_client(head))

    async def _last(self, head: request_head.RequestHead) -> _Told | None:
        """Return what a model was told last; in another process, with what its session began."""
        last = self._told.get(_client(head))
        if last is not None or (begun := await self.begun(head)) is None:
            return last
        tools = {tool.name: tool.digest for tool in begun if tool.digest}
        return _Told(tools, frozenset(tools), list_changes.policy_in(head.client_session))

    def _record(
        self, head: request_head.RequestHead, tools: tool_lists.ToolList, last: _Told | None = None
    ) -> None:
        told = {name: digest.hex() for name, digest in tools.callable.items()}
        ever = frozenset(told) | (last.ever if last is not None else frozenset())
        self._told.put(_client(head), _Told(told, ever, tools.policy_digest))


def _client(head: request_head.RequestHead) -> Hashable:
    """Return the identity of a client: its session's id, or else its connection."""
    return head.token, head.agent, head.session, head.client_session or head.address
