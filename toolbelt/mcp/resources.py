"""The methods of ``resources/``, and the policy as a resource, for clients that cut ``instructions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.mcp import (
    exchanges,
    prompts_and_resources,
    protocol,
    request_head,
    results,
    revisions,
    updates,
)
from toolbelt.runtime import threads
from toolbelt.runtime.calls import resource_updates, subscriptions

POLICY = "toolbelt://policy"
MIME_TYPE = "text/plain"
LISTED = {
    "uri": POLICY,
    "name": "policy",
    "title": "Policy",
    "description": "How this agent should use its tools: the server's complete instructions.",
    "mimeType": MIME_TYPE,
}


async def answer(
    exchange: exchanges.Exchange,
    head: request_head.RequestHead,
    message: protocol.Message,
    revision: revisions.Revision,
) -> exchanges.Reply | None:
    """Answer a method of ``resources/``. Raise ProtocolError for a resource that does not exist."""
    more: Mapping[str, Any] = results.MODERN_LIST if revision.is_modern else {}
    match message.method:
        case "resources/list":
            return await prompts_and_resources.list_page(
                exchange, head, message, revision, "resources", (LISTED,)
            )
        case "resources/templates/list":
            return await prompts_and_resources.list_page(
                exchange, head, message, revision, "resourceTemplates"
            )
        case "resources/read" if message.params.get("uri") != POLICY:
            return await prompts_and_resources.answer(exchange, head, message, revision)
        case "resources/read":
            may_grow = not revision.is_modern
            current = await exchange.current_list(head, may_grow=may_grow)
            exchange.shared.record_sent(head, current.tools, "policy", may_grow=may_grow)
            content = {"uri": POLICY, "mimeType": MIME_TYPE, "text": current.tools.instructions}
            return exchange.reply(message, {**more, "contents": [content]}, is_stale=current.is_stale)
    return await _change_subscription(exchange, head, message, revision)


async def _change_subscription(
    exchange: exchanges.Exchange,
    head: request_head.RequestHead,
    message: protocol.Message,
    revision: revisions.Revision,
) -> exchanges.Reply:
    """Answer ``resources/subscribe`` and ``resources/unsubscribe``, of a client of the first era."""
    await exchange.admitted(head)
    uri = message.params.get("uri")
    if not isinstance(uri, str):
        raise protocol.ProtocolError(protocol.INVALID_PARAMS, "params.uri must be a string.")
    is_policy, key = uri == POLICY, "" if uri == POLICY else uri
    if message.method == "resources/unsubscribe":
        await threads.run(subscriptions.remove, subscription(head), key)
    elif not is_policy and not await threads.run(resource_updates.active, head.key, [uri]):
        raise prompts_and_resources.not_found(message, revision, uri)
    elif not is_policy and await threads.run(subscriptions.is_full, subscription(head), uri):
        raise protocol.ProtocolError(
            protocol.INVALID_REQUEST,
            f"This client already has {subscriptions.MAX_FOLLOWED} subscriptions to resources, and no more are"
            " followed. Unsubscribe from some of them first.",
            status=429,
        )
    elif not is_policy and not await updates.can_follow(
        updates.call_of(exchange, head, (await exchange.current_list(head, may_grow=True)).bearer), [uri]
    ):
        raise protocol.ProtocolError(
            protocol.METHOD_NOT_FOUND,
            "The server of this resource sends no updates. Read the resource again instead.",
        )
    elif not await threads.run(subscriptions.add, subscription(head), key):
        raise protocol.ProtocolError(
            protocol.INVALID_REQUEST,
            f"This token already has {subscriptions.MAX_COUNT} subscriptions. Unsubscribe from some of them first.",
            status=429,
        )
    if not is_policy:
        await exchange.shared.streams.sync(head.agent)
    return exchange.reply(message, {})


def subscription(head: request_head.RequestHead) -> str:
    """Return the key of this client's subscription."""
    return subscriptions.key(head.token, head.agent, head.session, head.client_session)


def updated(more: Mapping[str, Any] | None = None, uri: str = POLICY) -> bytes:
    """Return the notification that the policy or another resource has changed."""
    return protocol.notification(protocol.RESOURCE_UPDATED, {"uri": uri, **(more or {})})
