"""What models were told whose lists of tools never change, and the lists with which their sessions began.

Such a client is never sent another list, because its program would put that before everything that the model has said.
Its model reads of changes in the next result instead, by name. What it was told is remembered in the process, as a best
effort; another process knows the list with which the session began. Calls of removed tools are refused in any case.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import caches, schema, texts
from toolbelt.mcp import list_changes, request_head
from toolbelt.runtime import threads
from toolbelt.runtime.records import conversation_records
from toolbelt.runtime.surfaces import first_lists, tool_lists

# The most clients and lists that a process remembers.
MAX_CLIENTS = 4096
MAX_LISTS = 64
# The most names of a kind in a notice.
MAX_NAMED = 20


@dataclass(frozen=True, slots=True)
class _Told:
    """The tools that a model was told it may call, with their definitions' digests; every one that it ever was told
    of; and the digest of the policy. ``root`` is the digest of the first of this that is known.
    """

    tools: Mapping[str, str]
    ever: frozenset[str]
    policy: str
    root: str = ""
    entry: int = 0

    @property
    def digest(self) -> str:
        """Return the digest of the tools and the policy."""
        return _digest([self.tools, self.policy])


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
        _note(head, self._record(head, tools), None, {}, tools.tokens.sent)

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
        known = self._record(head, now, last)
        if last is None:
            _note(head, known, None, {}, now.tokens.sent)
            return ""
        callable_ = {name: digest.hex() for name, digest in now.callable.items()}
        kinds = {
            "you may also call": callable_.keys() - last.tools.keys(),
            "no longer available": last.tools.keys() - callable_.keys(),
            "other definitions": {
                name for name, digest in callable_.items() if last.tools.get(name, digest) != digest
            },
        }
        said = dict(zip(("added", "removed", "changed"), map(sorted, kinds.values()), strict=True))
        _note(head, known, last, said, 0)
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
        policy = list_changes.policy_in(head.client_session)
        return _Told(tools, frozenset(tools), policy, _digest([tools, policy]))

    def _record(
        self, head: request_head.RequestHead, tools: tool_lists.ToolList, last: _Told | None = None
    ) -> _Told:
        told = {name: digest.hex() for name, digest in tools.callable.items()}
        known = _Told(told, frozenset(told), tools.policy_digest)
        known = dataclasses.replace(known, root=known.digest)
        if last is not None:
            entry = last.entry + (last.digest != known.digest)
            known = dataclasses.replace(known, ever=known.ever | last.ever, root=last.root, entry=entry)
        self._told.put(_client(head), known)
        return known


def _note(
    head: request_head.RequestHead,
    now: _Told,
    last: _Told | None,
    changes: Mapping[str, Collection[str]],
    tokens: int,
) -> None:
    """Record what the model of a client was told, as of a conversation that a program keeps."""
    # The same client says the same in every process.
    client = [head.session, head.client_session or head.address]
    chain = _digest([client, now.digest])
    if not conversation_records.is_due(head.key, chain):
        return
    has_changed = last is not None and last.digest != now.digest
    point = conversation_records.Point(
        chain=chain,
        root=now.root,
        parent=_digest([client, last.digest]) if last is not None and has_changed else "",
        line=conversation_records.CONSTANT,
        is_in_words=True,
        entry=now.entry,
        start=() if has_changed else tuple(f"tool {name}" for name in now.tools),
    )
    conversation_records.note(head.key, point, changes, tokens)


def _digest(value: Any) -> str:
    return hashlib.sha256(schema.canonical(value).encode()).hexdigest()[:24]


def _client(head: request_head.RequestHead) -> Hashable:
    """Return the identity of a client: its session's id, or else its connection."""
    return head.token, head.agent, head.session, head.client_session or head.address
