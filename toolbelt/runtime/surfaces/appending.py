"""What a conversation must still be told of a surface: the ``append`` of its document. (docs/reference/formats.md)

The caller keeps the conversation; nothing is stored, so any process can answer, and the same question has the same
answer.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from toolbelt.core import conversations, definitions, errors, policy, schema, surface, texts, tool_deltas
from toolbelt.formats.appending import lines
from toolbelt.formats.appending import rendering as appended
from toolbelt.runtime.records import context_use, conversation_records
from toolbelt.runtime.surfaces import conversation_tokens

Platform = lines.Platform
PLATFORMS = lines.PLATFORMS
# How many definitions a conversation has in reserve, for a platform that can only refer to them. Each may be billed.
MAX_DEFERRED = 64
# How many of the things that were purged a message names.
MAX_NAMED = 3
_DIGITS = 24

# Why a conversation begins again.
Restart = Literal["unknown", "other-line", "too-long", "too-many", "too-large", "purged"]
_WHY: Mapping[Restart, str] = {
    "unknown": "The token is not one that this agent was given by this version.",
    "other-line": "The token belongs to a conversation with another provider or another line of models.",
    "too-long": f"More than {lines.MAX_BYTES // 1024} KB were appended: a new start costs less.",
    "too-many": f"It was changed more than {lines.MAX_ENTRIES:,} times: a new start costs less.",
    "too-large": "Its token would become too long: it has seen more tools than the agent has.",
    "purged": "An operator removed {purged} from every conversation.",
}
_HOW = "Send the new prefix. Leave out what was appended before and all thinking; texts, calls and results may stay."
_HOW_PURGED = " Leave out those that repeat what was removed."


class Conversation(NamedTuple):
    """The conversation that a request belongs to.

    token: What its model was told; None for a new conversation. platform: Where the model runs. compacted: The provider
    compacted it. hold: Nothing can be appended now, because the model's turn is only paused.
    """

    token: str | None = None
    platform: Platform = "api"
    compacted: bool = False
    hold: bool = False


def of(
    conversation: Conversation, shown: surface.Surface, hashes: Mapping[str, str], form: str, model: str
) -> dict[str, Any]:
    """Return the ``append`` of a surface's document. ``hashes`` are those of its tools.

    Raise errors.ProviderLimit if the provider does not accept the prefix of a new conversation, or errors.Invalid if
    the agent has too many tools for one.
    """
    line = lines.of(form, model, conversation.platform)
    token = conversation_tokens.unseal(shown.agent, conversation.token) if conversation.token else None
    restart = _restart(conversation, token, line, shown)
    if token is None or restart:
        return _begun(line, shown, hashes, restart)
    view = token.view
    if conversation.compacted:
        view = conversations.compacted(view, line.means)
        token = dataclasses.replace(token, size=0, entries=0)
    if conversation.hold:
        # What the compaction removed is said later.
        held = dataclasses.replace(token, view=view)
        text = conversation_tokens.seal(shown.agent, held) if conversation.compacted else conversation.token
        document = _document(line, held, text or "", shown, conversations.NOTHING)
        return {**document, "messages": []}
    now = conversations.content_of(shown, hashes, without=appended.dispatching(line))
    left_out: Mapping[str, str] = {}
    if view.now != now.digest and (left_out := appended.unsupported(line, _new_tools(shown, view, now))):
        tools = {name: digest for name, digest in now.tools.items() if name not in left_out}
        now = dataclasses.replace(now, tools=tools)
    changes, after = conversations.compare(view, now, line.means)
    messages = appended.messages(line, changes, after, shown)
    text = conversation.token or ""
    if after != token.view:
        said = schema.canonical(messages)
        token = dataclasses.replace(
            token,
            view=after,
            chain=_digest(token.chain + said) if messages else token.chain,
            entries=token.entries + bool(messages),
            size=token.size + (len(said.encode()) if messages else 0),
            # What is said now was not purged: a purge before it is no reason to begin again.
            purges=shown.resolution.context.catalog.last_purge,
        )
        text = conversation_tokens.seal(shown.agent, token)
        if len(text) > conversation_tokens.MAX_LENGTH:
            return _begun(line, shown, hashes, _why("too-large"))
    return _document(line, token, text, shown, changes, messages, left_out)


def _new_tools(
    shown: surface.Surface, view: conversations.View, now: conversations.Content
) -> list[definitions.Definition]:
    """Return the tools that a conversation has not seen, or not in this version."""
    known = view.all_tools()
    return [
        tool
        for tool in (*shown.tools, *shown.meta_tools)
        if tool.name in now.tools
        and (tool.name not in known or known[tool.name].digest != now.tools[tool.name])
    ]


def point(
    agent: str, conversation: Conversation, append: Mapping[str, Any]
) -> conversation_records.Point | None:
    """Return where a conversation is after this ``append``."""
    now = conversation_tokens.unseal(agent, append["token"])
    before = conversation_tokens.unseal(agent, conversation.token) if conversation.token else None
    if now is None:
        return None
    has_moved = before is not None and append["prefix"] is None and before.chain != now.chain
    return conversation_records.Point(
        chain=now.chain,
        root=now.root,
        parent=before.chain if before is not None and has_moved else "",
        line=now.line,
        is_in_words=not lines.appends(now.line),
        entry=now.entries,
        start=() if has_moved else tuple(sorted(_names_of(now.view.start))),
    )


def _names_of(content: conversations.Content) -> frozenset[str]:
    return conversations.names(content.tools, content.sections, content.loadable)


def unchanged(
    conversation: Conversation, shown: surface.Surface, hashes: Mapping[str, str], form: str, model: str
) -> dict[str, Any] | None:
    """Return the ``append`` of a conversation that need be told nothing; None for any other."""
    if not conversation.token or conversation.compacted:
        return None
    line = lines.of(form, model, conversation.platform)
    token = conversation_tokens.unseal(shown.agent, conversation.token)
    if token is None or _restart(conversation, token, line, shown):
        return None
    now = conversations.content_of(shown, hashes, without=appended.dispatching(line))
    if token.view.now != now.digest:
        return None
    return _document(line, token, conversation.token, shown, conversations.NOTHING)


def _restart(
    conversation: Conversation,
    token: conversation_tokens.Token | None,
    line: lines.Line,
    shown: surface.Surface,
) -> dict[str, str] | None:
    """Return why a conversation must begin again, as a code and a message; None if it continues, or is new."""
    if token is None:
        return _why("unknown") if conversation.token else None
    if token.line != line.key:
        return _why("other-line")
    if conversation.hold:
        # A turn that is only paused is resumed first.
        return None
    if purged := token.purged(shown.resolution.context.catalog):
        return _why("purged", purged)
    if token.entries > lines.MAX_ENTRIES:
        return _why("too-many")
    return _why("too-long") if token.size > line.max_bytes else None


def _why(code: Restart, purged: Sequence[str] = ()) -> dict[str, str]:
    why = _WHY[code].format(purged=texts.listing(purged, MAX_NAMED))
    return {"code": code, "message": f"{why} {_HOW}{_HOW_PURGED if purged else ''}"}


def _begun(
    line: lines.Line, shown: surface.Surface, hashes: Mapping[str, str], restart: dict[str, str] | None
) -> dict[str, Any]:
    deferred = _in_reserve(shown) if line.means.add == "refer" else []
    refused = appended.unsupported(line, deferred)
    deferred = [tool for tool in deferred if tool.name not in refused]
    prefix = appended.prefix(line, shown, deferred)
    now = conversations.content_of(shown, hashes, without=appended.dispatching(line))
    reserve = tool_deltas.hashes(deferred)
    root = _digest(schema.canonical(prefix))
    token = conversation_tokens.Token(
        line=line.key,
        view=conversations.begin(now, reserve),
        root=root,
        chain=root,
        dispatches=line.dispatches,
        purges=shown.resolution.context.catalog.last_purge,
    )
    text = conversation_tokens.seal(shown.agent, token)
    if len(text) > conversation_tokens.MAX_LENGTH:
        message = f"{shown.agent} has too many tools for one. Ask without it, or give the agent fewer tools."
        raise errors.Invalid([errors.Problem(path="conversation", message=message)])
    document = _document(line, token, text, shown, conversations.NOTHING)
    tokens = context_use.count(shown).sent
    return {**document, "prefix": prefix, "tokens": tokens, "restart": restart}


def _document(
    line: lines.Line,
    token: conversation_tokens.Token,
    text: str,
    shown: surface.Surface,
    changes: conversations.Changes,
    messages: appended.Messages | None = None,
    left_out: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    request = appended.request(line, token.view, shown)
    catalog = shown.resolution.context.catalog
    withdrawn = {name for name, told in token.view.tools.items() if told.how == "withdrawn"}
    return {
        "line": line.key,
        "token": text,
        "prefix": None,
        "messages": [*(messages or ()), *request.messages],
        "tokens": _tokens(changes, shown) if messages else 0,
        "request": dict(request.parameters),
        "headers": line.headers,
        "changes": {
            "added": sorted((*changes.added, *changes.offered, *changes.through)),
            "changed": sorted((*changes.replaced, *changes.altered)),
            "removed": list(changes.removed),
            "policy": [*changes.said, *changes.ended],
            "loadable": [*changes.loadable, *changes.unloadable],
            "left_out": dict(left_out or {}),
        },
        "restart": None,
        "held": {
            "tools": len(withdrawn),
            "tokens": definitions.tokens(catalog, sorted(withdrawn & catalog.tools.keys())),
        },
    }


def _tokens(changes: conversations.Changes, shown: surface.Surface) -> int:
    """Return about how many tokens changes cost: those of definitions and of the policy."""
    stored = shown.resolution.context.catalog
    defined = {*changes.added, *changes.replaced} & stored.tools.keys()
    said = (
        section for section in shown.policy.sections if conversations.section_key(section) in changes.said
    )
    return definitions.tokens(stored, sorted(defined)) + sum(
        policy.section_tokens(stored, section) for section in said
    )


def _in_reserve(shown: surface.Surface) -> list[definitions.Definition]:
    """Return the definitions that the agent may get to see later, as far as it may know of them now."""
    stored = shown.resolution.context.catalog
    keys = (decision.tool for decision in shown.resolution.discoverable())
    return [definitions.of(stored, key) for key in itertools.islice(keys, MAX_DEFERRED)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
