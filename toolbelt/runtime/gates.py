"""The gate that every call passes: when it comes in, and again directly before its tool runs.

A call that was admitted may wait: for a place, for a plugin to get ready, for a server to connect. What an operator
denies meanwhile counts for it, so it is judged again at the last moment; and an emergency stop ends a call that runs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django import db

from toolbelt import conf
from toolbelt.core import budgets, calls, catalog, dispatch, errors, resolution
from toolbelt.plugins import contract
from toolbelt.runtime import recording, request_contexts, snapshots, surfaces, threads
from toolbelt.store import databases

P = ParamSpec("P")
T = TypeVar("T")

# Reads the current state for a call on an event loop: None if that needs a thread, or if the call may not be made.
Look = Callable[[], Awaitable[request_contexts.RequestContext | None]]
Resolved = tuple[resolution.Snapshot, budgets.Resolution, Hashable]


class Gate:
    """The gate that one call passes: when it comes in, and again directly before its tool runs."""

    def __init__(
        self,
        made: recording.Recording,
        subagent: str | None,
        by_dispatch: bool,
        may_call: Callable[[], object],
        probe: Look | None = None,
    ) -> None:
        self.made, self.by_dispatch, self.may_call = made, by_dispatch, may_call
        self.subagent = subagent
        # Whether the tool was named to call_tool, which may call what is discoverable, too.
        self.is_dispatched = False
        self._probe = probe
        self._seen: request_contexts.RequestContext | None = None

    @property
    def is_asked_on_a_loop(self) -> bool:
        """Return whether the state can be looked at from the event loop, without a thread."""
        return self._probe is not None

    async def probe(self) -> None:
        """Look at the state from the event loop, so that :meth:`take` need not ask the database."""
        if self._probe is not None:
            self._seen = await self._probe()

    async def is_unchanged(self) -> bool:
        """Return whether nothing was committed since :meth:`probe` that could concern the call. False if unknown."""
        if self._probe is None or self._seen is None:
            return False
        now = await self._probe()
        return (
            now is not None
            and now.probed == self._seen.probed
            and not snapshots.has_expired(self._seen.snapshot)
        )

    async def in_thread(self, act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return what ``act`` returns, run where the database is asked for this caller."""
        if self._probe is not None:
            return await threads.run(act, *arguments, **named)
        return await sync_to_async(act)(*arguments, **named)

    def resolve(self) -> Resolved:
        """Return the snapshot, what the agent has by it, and a value that is equal as long as both are."""
        if (known := self.known()) is not None:
            return known
        if (seen := self._seen) is not None:
            self.made.revision = seen.probed.state.number
            return seen.snapshot, budgets.resolve(seen.snapshot), seen.probed
        snapshot, state = self.take()
        return snapshot, budgets.resolve(snapshot), state

    def known(self) -> Resolved | None:
        """Return what :meth:`resolve` returns if it is kept in this process; None if it has to be worked out."""
        if (seen := self._seen) is None:
            return None
        known = surfaces.cached(seen.snapshot, seen.cache_key[1])
        if known is None:
            return None
        self.made.revision = seen.probed.state.number
        return seen.snapshot, known.resolution, seen.probed

    def take(self) -> tuple[resolution.Snapshot, Hashable]:
        """Return the snapshot as the database has it now, and a value that is equal as long as it is."""
        snapshot, probed = snapshots.take(
            self.made.agent, self.made.session, self.made.request_id, self.subagent
        )
        self.made.revision = probed.number
        return snapshot, probed.state

    def admit(
        self, resolved: budgets.Resolution, snapshot: resolution.Snapshot, *, is_quick: bool = False
    ) -> calls.Admission | calls.Refusal:
        """Admit the call or refuse it; with ``is_quick``, raise schema.TooComplex where that takes long."""
        tool, arguments, hide_denied = self.made.tool, self.made.arguments, conf.HIDE_DENIED
        if self.is_dispatched:
            judged = dispatch.admit(resolved, snapshot, tool, arguments, hide_denied=hide_denied)
        else:
            judged = calls.admit(resolved, tool, arguments, hide_denied=hide_denied, is_quick=is_quick)
        if isinstance(judged, calls.Refusal) and not judged.errors:
            self.made.explain(resolved)
        return judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A call that may go through: who runs it, and until when (in seconds of the monotonic clock).

    ``definition`` is the tool as it is stored; ``server`` the plugin if it is an upstream server, else None; ``state``
    names what the gate was asked about; ``may_ask`` whether the server may ask the user. ``method`` is MCP's for the
    request that goes to an upstream server; of another one than a tool's call the ``arguments`` are its parameters.
    """

    tool: str
    plugin: str
    definition: catalog.Tool
    server: catalog.Plugin | None
    arguments: Mapping[str, Any]
    context: contract.CallContext
    until: float
    seconds: float
    gate: Gate
    state: Hashable
    may_ask: bool = False
    method: str = "tools/call"

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())


class DeniedError(Exception):
    """The call was admitted, and is not any more."""

    def __init__(self, refusal: calls.Refusal, because: str) -> None:
        self.refusal, self.because = refusal, because
        super().__init__(because)


class UncheckedError(Exception):
    """Whether the call may still run cannot be found out: the database cannot be read."""


class UnauthorizedError(Exception):
    """The caller may no longer call; ``__cause__`` is the reason."""


def check_again(admitted: Admitted) -> None:
    """Raise Denied or Unauthorized if the call may no longer run, as the database has it now; Unchecked if unknown."""
    try:
        try:
            admitted.gate.may_call()
        except db.Error:
            raise
        except Exception as error:
            raise UnauthorizedError from error
        snapshot, state = admitted.gate.take()
        if state == admitted.state:
            return
        judged = admitted.gate.admit(budgets.resolve(snapshot), snapshot)
        if isinstance(judged, calls.Refusal):
            because = admitted.gate.made.reason_text or judged.without_values()
            raise DeniedError(judged, f"Denied while it waited: {because}")
        stored = snapshot.catalog.tools[admitted.tool]
        if stored.plugin != admitted.plugin or judged.options != admitted.context.options:
            message = f"{admitted.tool} was changed while this call waited: call it again."
            raise DeniedError(calls.Refusal(code="tool-unavailable", message=message), message)
    except (errors.NotFound, errors.Archived) as error:
        raise DeniedError(calls.unknown(admitted.tool), str(error)) from error
    except db.Error as error:
        raise UncheckedError(str(error)) from error
    finally:
        databases.release()


def blocked(admitted: Admitted) -> DeniedError | None:
    """Return why a running call has to end, if it has to: its tool is blocked, or its agent archived or gone."""
    try:
        snapshot, _ = admitted.gate.take()
        resolved = budgets.resolve(snapshot)
        is_known = admitted.tool in snapshot.catalog.tools
        if is_known and resolved.decision(admitted.tool).code != "blocked":
            return None
        judged = admitted.gate.admit(resolved, snapshot)
    except (errors.NotFound, errors.Archived) as error:
        return DeniedError(calls.unknown(admitted.tool), str(error))
    finally:
        databases.release()
    if isinstance(judged, calls.Refusal):
        because = admitted.gate.made.reason_text or judged.message
        return DeniedError(judged, f"Cancelled while it ran: {because}")
    return None
