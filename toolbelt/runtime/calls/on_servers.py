"""Calls of upstream servers' tools, and other MCP requests, on a connection of this process or of another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Destination:
    """The server of a call, in its configuration with this ``digest``, and whose account there is used: ``person`` is
    None if it is the same for all. ``left`` returns the remaining seconds of the call.
    """

    plugin: catalog.Plugin
    settings: connections.Connection
    digest: str
    person: int | None
    left: Callable[[], float]

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work, on the event loop of the connections."""
        return await process_connections.running().run(work, self.left(), self.left)


async def run(admitted: gates.Admitted, check: background.Check | None = None) -> ToolResult:
    """Return the complete result of a call. Cancelling this cancels the request at the server.

    The state that the server keeps for a connection belongs to the caller alone. If another process holds that
    connection, it makes the call. ``check`` is awaited on the servers' event loop, directly before the request is
    written.

    Raise what ``check`` raises, contract.ToolError for the model, registry.TimedOutError (or TooSlowError), and
    UnreachableError if the server cannot be reached, does not have the stored version of the tool, or may have no more
    connections.
    """
    plugin, tool, gate = admitted.server, admitted.tool, admitted.gate
    if plugin is None:
        raise Unreachable(f"{admitted.plugin} is not an upstream server.")
    features = elicitation.Features(admitted, plugin)
    if features.resumed:
        await features.check_answers()
    settings, within = process_connections.connection_of(plugin), features.left()
    destination = _Destination(
        plugin=plugin,
        settings=settings,
        digest=process_connections.digest_of(plugin),
        person=_person(plugin, settings, gate),
        left=features.left,
    )
    request = _request(admitted, destination, features, check)
    try:
        return results.read(await _answer(destination, request, gate), request.method)
    except TimeoutError as error:
        raise TooSlowError(tool, settings.timeout, str(error)) from None
    except background.DeadlineError:
        raise registry.TimedOutError(tool, within) from None


def _request(
    admitted: gates.Admitted,
    destination: _Destination,
    features: elicitation.Features,
    check: background.Check | None,
) -> calling.Request:
    """Return the request to the server: its own name for the tool, in the version that agents have."""
    plugin, tool, gate = destination.plugin, admitted.definition, admitted.gate
    progress, offered = gate.call.progress, declared_versions.offered(tool)
    return calling.Request(
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
        caller=_owner("session", destination, gate),
    )


async def _answer(
    destination: _Destination, request: calling.Request, gate: gates.CallGate
) -> Mapping[str, Any]:
    """Return MCP's result of the request, from the process that holds the caller's connection."""
    plugin, digest = destination.plugin, destination.digest
    key = _owner(await _scope(destination), destination, gate)
    stale_claim_id = ""
    for _ in range(MAX_PROCESSES):
        holder = await _holder(destination, key, gate, stale_claim_id)
        if isinstance(holder, upstream_pool.Pooled):
            try:
                return await destination.run(calling.run(holder.server, request))
            finally:
                process_connections.pool.give_back(holder)
        if holder is not None:
            try:
                return await destination.run(forwarding.call(holder, digest, request, telemetry.carried()))
            except background.DeadlineError:
                process_connections.claims.forget_process(plugin.name, key)
                raise
            except forwarding.NotHeldError:
                # Its process has ended, or closed the connection: this process may claim it.
                stale_claim_id = holder.id
    raise Unreachable(f"The connection to {plugin.name} keeps moving between processes.")


async def _holder(
    destination: _Destination, key: str, gate: gates.CallGate, stale_claim_id: str
) -> upstream_pool.Pooled | upstream_claims.Claim | None:
    """Return this process's connection for this owner, reserved, or the claim of the process that holds it; None if
    another call in this process has just settled who does.
    """
    plugin, settings, digest = destination.plugin, destination.settings, destination.digest
    if (pooled := process_connections.pool.find(plugin.name, key, digest)) is not None:
        return pooled
    if key == connection_owners.EVERYBODY:
        return server_lists.take(plugin, key, settings, digest)
    settling = process_connections.claims.settle(
        plugin.name,
        key,
        lambda: process_connections.listening(_serve),
        lambda claim: server_lists.take(plugin, key, settings, digest, claim=claim),
        gate.in_thread,
        stale_claim_id=stale_claim_id,
    )
    return await _within(destination.left, settling)


def _owner(scope: connection_owners.Scope, destination: _Destination, gate: gates.CallGate) -> str:
    """Return the key of the owner whose connection of this scope the call uses."""
    return connection_owners.key(scope, gate.call.key, gate.caller.client_session, person=destination.person)


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


async def _scope(destination: _Destination) -> connection_owners.Scope:
    """Return who shares a connection. A server over HTTP is connected to first if that is not configured, by the person
    themselves if each signs in: an operator may not be signed in.
    """
    plugin, settings, digest = destination.plugin, destination.settings, destination.digest
    if scope := settings.shared_by(has_session=process_connections.known_session(plugin.name, digest)):
        return scope
    pooled = server_lists.take(plugin, connection_owners.shared(destination.person), settings, digest)
    try:
        await destination.run(pooled.server.tools())
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
