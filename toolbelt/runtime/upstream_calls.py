"""Calls of upstream servers' tools, and other MCP requests, on a connection of this process or of another one."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from toolbelt.core import catalog, connections, tool_versions
from toolbelt.core.imported import importing, non_tool_importing
from toolbelt.plugins import background, registry
from toolbelt.plugins.upstream import client_features, connection, connection_owners, relay, requests, results
from toolbelt.runtime import (
    secrets,
    telemetry,
    threads,
    upstream_claims,
    upstream_connections,
    upstream_forwarding,
    upstream_listing,
    upstream_pool,
)

T = TypeVar("T")
ConnectionOwner = connection_owners.ConnectionOwner
Progress = connection.Progress
Unreachable = upstream_connections.Unreachable
TooManyError = upstream_pool.TooManyError
ToolResult = results.ToolResult
ToolFailed = results.ToolFailedError
RequestFailedError = requests.RequestFailedError
FOLLOW = requests.FOLLOW
content = results.content

# The maximum number of processes that are asked for a connection, one after the other.
MAX_PROCESSES = 5

# The owner of calls without an agent.
_NO_OWNER = ConnectionOwner()
_take = functools.partial(upstream_connections.take, on_change=upstream_listing.record_change)


class TooSlowError(registry.TimedOutError):
    """The server took longer than its own connection allows."""


async def call(
    plugin: catalog.Plugin,
    tool: catalog.Tool,
    arguments: Mapping[str, Any],
    *,
    left: Callable[[], float],
    owner: ConnectionOwner = _NO_OWNER,
    in_thread: upstream_claims.InThread = threads.run,
    progress: Progress | None = None,
    check: background.Check | None = None,
    features: client_features.ClientFeatures | None = None,
    method: str = results.CALL,
) -> ToolResult:
    """Return the complete result of a tool. Cancelling this cancels the request at the server.

    With another ``method`` of MCP, the ``tool`` is a prompt, a resource or a template, and the ``arguments`` are the
    parameters of that request.

    ``left`` returns how many seconds the call may still take in total, and ``features`` are those of its client. The
    state that the server keeps for a connection belongs to the ``owner`` alone. If another process holds that
    connection, it makes the call; ``in_thread`` runs the database queries for that. ``check`` is awaited on the
    servers' event loop, directly before the request is written.

    Raise what ``check`` raises, contract.ToolError for the model, registry.TimedOutError (or TooSlowError), and
    UnreachableError if the server cannot be reached, does not have the stored version of the tool, or may have no more
    connections.
    """
    settings, digest = upstream_connections.connection_of(plugin), upstream_connections.digest_of(plugin)
    within = left()
    request = _Call(
        plugin, tool, arguments, _masking(progress) if progress is not None else None, check, features, method
    )
    try:
        key = owner.key(await _scope(plugin, settings, digest, left))
        stale_claim_id = ""
        for _ in range(MAX_PROCESSES):
            held_by: upstream_pool.Pooled | upstream_claims.Claim | None
            if (held_by := upstream_connections.pool.find(plugin.name, key, digest)) is None:
                if key == connection_owners.EVERYBODY:
                    held_by = _take(plugin, key, settings, digest)
                else:
                    settling = upstream_connections.claims.settle(
                        plugin.name,
                        key,
                        lambda: upstream_connections.listening(_serve),
                        lambda claim: _take(plugin, key, settings, digest, claim=claim),
                        in_thread,
                        stale_claim_id=stale_claim_id,
                    )
                    held_by = await _within(left, settling)
            if isinstance(held_by, upstream_pool.Pooled):
                try:
                    result = await upstream_connections.running().run(_answer(held_by, request), left(), left)
                finally:
                    upstream_connections.pool.give_back(held_by)
                return results.read(result, method)
            if held_by is not None:
                try:
                    forwarded = _forward(held_by, digest, request)
                    return results.read(
                        await upstream_connections.running().run(forwarded, left(), left), method
                    )
                except background.DeadlineError:
                    upstream_connections.claims.forget_process(plugin.name, key)
                    raise
                except upstream_forwarding.NotHeldError:
                    # Its process has ended, or closed the connection: this process may claim it.
                    stale_claim_id = held_by.id
        raise Unreachable(f"The connection to {plugin.name} keeps moving between processes.")
    except TimeoutError:
        raise TooSlowError(tool.key, settings.timeout) from None
    except background.DeadlineError:
        raise registry.TimedOutError(tool.key, within) from None


@dataclasses.dataclass(slots=True)
class _Call:
    """A call of a tool, with the callbacks of its caller."""

    plugin: catalog.Plugin
    tool: catalog.Tool
    arguments: Mapping[str, Any]
    progress: Progress | None
    check: background.Check | None
    features: client_features.ClientFeatures | None
    method: str

    @property
    def name(self) -> str:
        """Return the server's own name of the tool."""
        return catalog.name_at_server(self.tool, self.plugin.namespace)


async def _answer(pooled: upstream_pool.Pooled, request: _Call) -> Mapping[str, Any]:
    """Return the MCP result of a call on a connection of this process."""
    name, namespace = request.name, request.plugin.namespace
    return await pooled.server.call(
        name,
        request.arguments,
        progress=request.progress,
        check=request.check,
        expected=lambda listed: _expect(
            pooled, listed, request.tool.kind, name, namespace, tool_versions.version(request.tool)
        ),
        features=request.features,
        method=request.method,
    )


async def _forward(claim: upstream_claims.Claim, digest: str, request: _Call) -> Mapping[str, Any]:
    """Return the MCP result of a call that the process with this claim makes."""
    params = {
        "plugin": request.plugin.name,
        "namespace": request.plugin.namespace,
        "owner": claim.owner,
        "digest": digest,
        "name": request.name,
        "arguments": request.arguments,
        "version": tool_versions.version(request.tool),
        "kind": request.tool.kind,
        "method": request.method,
        "trace": telemetry.carried(),
    }
    return await upstream_forwarding.call(
        claim.address, params, progress=request.progress, check=request.check, features=request.features
    )


async def _serve(method: str, params: Mapping[str, Any], exchange: relay.Exchange) -> Any:
    """Process a request of another process: make a call on a connection of this process, or close it."""
    if method == upstream_forwarding.CLOSE:
        upstream_connections.pool.close(lambda pooled: pooled.claim == params["claim"])
        return None
    name, pool_key = params["name"], (params["plugin"], params["owner"])
    if (pooled := upstream_connections.pool.find(*pool_key, params["digest"])) is None:
        if (pending := upstream_connections.claims.pending(*pool_key)) is not None:
            await asyncio.wait({asyncio.wrap_future(pending)})
            pooled = upstream_connections.pool.find(*pool_key, params["digest"])
        if pooled is None:
            raise upstream_forwarding.NotHeldError
    reserved, features = pooled, params["features"]
    try:
        with telemetry.continued(params.get("trace") or {}):
            return await reserved.server.call(
                name,
                params["arguments"],
                progress=upstream_forwarding.progress_of(exchange) if params["progress"] else None,
                check=upstream_forwarding.check_of(exchange),
                expected=lambda listed: _expect(
                    reserved, listed, params["kind"], name, params["namespace"], params["version"]
                ),
                features=upstream_forwarding.RemoteFeatures(features, exchange) if features else None,
                method=params["method"],
            )
    finally:
        upstream_connections.pool.give_back(reserved)


def _expect(
    pooled: upstream_pool.Pooled,
    listed: importing.ServerListing,
    kind: catalog.Kind,
    name: str,
    namespace: str,
    version: str,
) -> None:
    """Raise UnreachableError if the server lists another version of the tool than the approved one."""
    if non_tool_importing.version(listed, kind, name, namespace) != version:
        # It changed without a notification. The new version is recorded for review.
        upstream_listing.record_change(pooled, listed)
        raise Unreachable(f"{pooled.name} no longer offers {name} as it was approved.")


async def _scope(
    plugin: catalog.Plugin, settings: connections.Connection, digest: str, left: Callable[[], float]
) -> connection_owners.Scope:
    """Return who shares a connection. A server over HTTP is connected to first if that is not configured."""
    if scope := settings.shared_by(has_session=upstream_connections.known_session(plugin.name, digest)):
        return scope
    pooled = _take(plugin, connection_owners.EVERYBODY, settings, digest)
    try:
        await upstream_connections.running().run(pooled.server.tools(), left(), left)
    finally:
        upstream_connections.give_back_listed(pooled)
    return (
        settings.shared_by(has_session=upstream_connections.known_session(plugin.name, digest)) or "session"
    )


async def _within(left: Callable[[], float], work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work. Raise background.DeadlineError if it takes longer than the remaining time."""
    try:
        async with asyncio.timeout(left()):
            return await work
    except TimeoutError:
        raise background.DeadlineError from None


def _masking(notify: Progress) -> Progress:
    """Return a progress callback that removes secrets from messages."""

    async def masked(progress: float, total: float | None, message: str | None) -> None:
        await notify(progress, total, message and secrets.mask(message))

    return masked
