"""Calls of upstream servers' tools, and other MCP requests, on a connection of this process or of another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from toolbelt.core import catalog, connections, declared_versions, tool_versions
from toolbelt.plugins import background, registry
from toolbelt.plugins.upstream import calling, connection_owners, live_connection, relay, requests, results
from toolbelt.runtime import secrets, telemetry
from toolbelt.runtime.calls import elicitation, gates
from toolbelt.runtime.upstream import claims as upstream_claims
from toolbelt.runtime.upstream import forwarding, process_connections, server_lists
from toolbelt.runtime.upstream import pool as upstream_pool

T = TypeVar("T")
Unreachable = process_connections.Unreachable
SignInNeeded, ScopesNeeded = live_connection.SignInNeededError, live_connection.ScopesNeededError
TooManyError = upstream_pool.TooManyError
ToolResult = results.ToolResult
ToolFailed = results.ToolFailedError
RequestFailedError = requests.RequestFailedError
FOLLOW, CAN_FOLLOW = requests.FOLLOW, requests.CAN_FOLLOW
content = results.content

# The maximum number of processes that are asked for a connection, one after the other.
MAX_PROCESSES = 5


class TooSlowError(registry.TimedOutError):
    """The server took longer than its own connection allows. ``wrote`` is what it wrote last that is not MCP."""

    def __init__(self, tool_name: str, within: float, wrote: str) -> None:
        super().__init__(tool_name, within)
        self.wrote = wrote


async def run(admitted: gates.Admitted, check: background.Check | None = None) -> ToolResult:
    """Return the complete result of a call. Cancelling this cancels the request at the server.

    The state that the server keeps for a connection belongs to the caller alone. If another process holds that
    connection, it makes the call. ``check`` is awaited on the servers' event loop, directly before the request is
    written.

    Raise what ``check`` raises, contract.ToolError for the model, registry.TimedOutError (or TooSlowError), and
    UnreachableError if the server cannot be reached, does not have the stored version of the tool, or may have no more
    connections.
    """
    plugin, tool, gate = admitted.server, admitted.definition, admitted.gate
    if plugin is None:
        raise Unreachable(f"{tool.plugin} is not an upstream server.")
    features = elicitation.Features(admitted, plugin)
    if features.resumed:
        await features.check_answers()
    settings, digest = process_connections.connection_of(plugin), process_connections.digest_of(plugin)
    person = _person(plugin, settings, gate)
    left, within = features.left, features.left()
    progress, offered = gate.call.progress, declared_versions.offered(tool)
    request = calling.Request(
        plugin=plugin.name,
        namespace=plugin.namespace,
        kind=tool.kind,
        name=catalog.name_at_server(tool, plugin.namespace),
        key=tool.key,
        version=tool_versions.version(offered),
        description=offered.description,
        any_description=catalog.keeps_description(tool, plugin),
        method=gate.call.method,
        arguments=gate.recording.arguments,
        progress=_masking(progress) if progress is not None else None,
        check=check,
        features=features,
        caller=connection_owners.key("session", gate.call.key, gate.caller.client_session, person=person),
    )
    try:
        scope = await _scope(plugin, settings, digest, left, person)
        key = connection_owners.key(scope, gate.call.key, gate.caller.client_session, person=person)
        stale_claim_id = ""
        for _ in range(MAX_PROCESSES):
            held_by: upstream_pool.Pooled | upstream_claims.Claim | None
            if (held_by := process_connections.pool.find(plugin.name, key, digest)) is None:
                if key == connection_owners.EVERYBODY:
                    held_by = server_lists.take(plugin, key, settings, digest)
                else:
                    settling = process_connections.claims.settle(
                        plugin.name,
                        key,
                        lambda: process_connections.listening(_serve),
                        lambda claim: server_lists.take(plugin, key, settings, digest, claim=claim),
                        gate.in_thread,
                        stale_claim_id=stale_claim_id,
                    )
                    held_by = await _within(left, settling)
            if isinstance(held_by, upstream_pool.Pooled):
                try:
                    result = await process_connections.running().run(
                        calling.run(held_by.server, request), left(), left
                    )
                finally:
                    process_connections.pool.give_back(held_by)
                return results.read(result, request.method)
            if held_by is not None:
                try:
                    forwarded = forwarding.call(held_by, digest, request, telemetry.carried())
                    result = await process_connections.running().run(forwarded, left(), left)
                    return results.read(result, request.method)
                except background.DeadlineError:
                    process_connections.claims.forget_process(plugin.name, key)
                    raise
                except forwarding.NotHeldError:
                    # Its process has ended, or closed the connection: this process may claim it.
                    stale_claim_id = held_by.id
        raise Unreachable(f"The connection to {plugin.name} keeps moving between processes.")
    except TimeoutError as error:
        raise TooSlowError(tool.key, settings.timeout, str(error)) from None
    except background.DeadlineError:
        raise registry.TimedOutError(tool.key, within) from None


async def _serve(method: str, params: Mapping[str, Any], exchange: relay.Exchange) -> Any:
    """Process a request of another process: make a call on a connection of this process, or close it."""
    if method == forwarding.CLOSE:
        process_connections.pool.close(lambda pooled: pooled.claim == params["claim"])
        return None
    pool_key, digest = (params["plugin"], params["owner"]), params["digest"]
    if (pooled := process_connections.pool.find(*pool_key, digest)) is None:
        if (pending := process_connections.claims.pending(*pool_key)) is not None:
            await asyncio.wait({asyncio.wrap_future(pending)})
            pooled = process_connections.pool.find(*pool_key, digest)
        if pooled is None:
            raise forwarding.NotHeldError
    try:
        with telemetry.continued(params.get("trace") or {}):
            return await calling.run(pooled.server, forwarding.received(params, exchange))
    finally:
        process_connections.pool.give_back(pooled)


def _person(plugin: catalog.Plugin, settings: connections.Connection, gate: gates.CallGate) -> int | None:
    """Return the person whose account at a server is used; None if it is the same for all. Raise SignInNeededError for
    a caller who is no person: another's account is never used instead.
    """
    if settings.sign_in != "person":
        return None
    if gate.caller.person is None:
        raise SignInNeeded(
            f"At {plugin.name}, each person signs in, and this caller is none: connect with a client that signs in,"
            " instead of a token."
        )
    return gate.caller.person


async def _scope(
    plugin: catalog.Plugin,
    settings: connections.Connection,
    digest: str,
    left: Callable[[], float],
    person: int | None,
) -> connection_owners.Scope:
    """Return who shares a connection. A server over HTTP is connected to first if that is not configured, by the person
    themselves if each signs in: an operator may not be signed in.
    """
    if scope := settings.shared_by(has_session=process_connections.known_session(plugin.name, digest)):
        return scope
    pooled = server_lists.take(plugin, connection_owners.shared(person), settings, digest)
    try:
        await process_connections.running().run(pooled.server.tools(), left(), left)
    finally:
        process_connections.give_back_listed(pooled)
    return settings.shared_by(has_session=process_connections.known_session(plugin.name, digest)) or "session"


async def _within(left: Callable[[], float], work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work. Raise background.DeadlineError if it takes longer than the remaining time."""
    try:
        async with asyncio.timeout(left()):
            return await work
    except TimeoutError:
        raise background.DeadlineError from None


def _masking(notify: calling.Progress) -> calling.Progress:
    """Return a progress callback that removes secrets from messages."""

    async def masked(progress: float, total: float | None, message: str | None) -> None:
        await notify(progress, total, message and secrets.mask(message))

    return masked
