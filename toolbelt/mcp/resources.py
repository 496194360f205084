"""The one resource that MCP clients can read: the agent's whole policy, for those that cut ``instructions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.mcp import exchanges, heads, protocol, revisions
from toolbelt.runtime import subscriptions, threads

POLICY = "toolbelt://policy"
MIME_TYPE = "text/plain"
LISTED = {
    "uri": POLICY,
    "name": "policy",
    "title": "Policy",
    "description": "How this agent is to use its tools: the server's instructions, uncut.",
    "mimeType": MIME_TYPE,
}


async def answer(
    exchange: exchanges.Exchange, head: heads.Head, message: protocol.Message, revision: revisions.Revision
) -> exchanges.Reply:
    """Answer the methods of ``resources/``. Raise Fault for a resource that does not exist."""
    more: Mapping[str, Any] = exchanges.MODERN_LIST if revision.is_modern else {}
    match message.method:
        case "resources/list" | "resources/templates/list":
            await exchange.admitted(head)
            protocol.cursor(message)
            is_list = message.method == "resources/list"
            listed = {"resources": [LISTED]} if is_list else {"resourceTemplates": []}
            return exchange.reply(message, {**more, **listed})
        case "resources/read":
            found = await exchange.found(head, may_grow=not revision.is_modern)
            _check(message, revision)
            content = {"uri": POLICY, "mimeType": MIME_TYPE, "text": found.tools.instructions}
            return exchange.reply(message, {**more, "contents": [content]}, is_stale=found.is_stale)
    await exchange.admitted(head)
    _check(message, revision)
    if message.method == "resources/unsubscribe":
        await threads.run(subscriptions.remove, subscription(head))
    elif not await threads.run(subscriptions.add, subscription(head)):
        raise protocol.Fault(
            protocol.INVALID_REQUEST,
            f"This token has {subscriptions.MOST} subscriptions: unsubscribe some of its clients first.",
            status=429,
        )
    return exchange.reply(message, {})


def subscription(head: heads.Head) -> str:
    """Return the key of this client's subscription."""
    return subscriptions.key(head.token, head.agent, head.session, head.client_session)


def updated(more: Mapping[str, Any] | None = None) -> bytes:
    """Write the notification that the policy changed."""
    return protocol.notification(protocol.RESOURCE_UPDATED, {"uri": POLICY, **(more or {})})


def _check(message: protocol.Message, revision: revisions.Revision) -> None:
    uri = message.params.get("uri")
    if not isinstance(uri, str):
        raise protocol.Fault(protocol.INVALID_PARAMS, "params.uri is a text.")
    if uri != POLICY:
        raise protocol.Fault(
            protocol.INVALID_PARAMS if revision.is_modern else protocol.RESOURCE_NOT_FOUND,
            f"There is no such resource: {POLICY} is the only one.",
            data={"uri": uri[:1000]},
        )
