"""A running plugin: initialization, tool calls and shutdown, on the plugins' event loop.

Every coroutine here runs on that loop, so that no locks are needed between awaits: two concurrent first calls
initialize the plugin once. Waiting for a plugin's code has time limits, and does not rely on the code to react to
cancellation.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from toolbelt.core import errors
from toolbelt.plugins import background, contract, lifecycle, offers

# Returns a plugin's runtime, given the name of its secrets and state, and its config. Called in a thread. If the
# runtime has an ``aclose``, it is awaited after the plugin has stopped.
RuntimeFor = Callable[[str, Mapping[str, Any]], contract.RuntimeAPI]

# How long cancelled calls and closing may take at the end.
CLOSE_SECONDS = 1.0
# Into how many slices a wait is split, so that time in which the event loop is blocked hardly counts.
WAIT_SLICES = 20

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A plugin's time limits, in seconds."""

    initialize: float = 30.0
    call: float = 60.0
    shutdown: float = 10.0


class Unavailable(errors.ToolbeltError):
    """The plugin has failed or was stopped. An operator can fix this. ``status`` has its state and error."""

    code = "tool-unavailable"

    def __init__(self, plugin: str, status: lifecycle.Status) -> None:
        self.plugin, self.status = plugin, status
        state = f"has failed: {status.error}" if status.error else f"is {status.state}"
        super().__init__(f"The plugin {plugin!r} {state}.")


class Running:
    """A registered plugin. Any thread may read ``status``; the loop's and waiting callers' threads change it."""

    def __init__(
        self,
        plugin: contract.ToolPlugin,
        offer: offers.Offer,
        *,
        config: Mapping[str, Any],
        runtime_for: RuntimeFor,
        limits: Limits,
    ) -> None:
        self.plugin, self.offer, self.status = plugin, offer, lifecycle.Status()
        # What it offers only since it was initialized.
        self.late_changes: tuple[errors.Problem, ...] = ()
        self._moving = threading.Lock()
        self._config, self._runtime_for, self._limits = config, runtime_for, limits
        self._runtime: contract.RuntimeAPI | None = None
        self._threads = background.Threads()
        self._starting: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = False

    def owns(self, task: asyncio.Task[Any] | None) -> bool:
        """Return whether the task runs this plugin's code."""
        return task in self._tasks

    def fail(self, error: str, cause: BaseException | None = None) -> None:
        """Set the plugin to failed, unless its state is final."""
        if self._move(lifecycle.failed(error)):
            facts = {"plugin": self.offer.name, "source": self.offer.source, "error": error}
            if cause is not None:
                facts["traceback"] = lifecycle.traced(cause)
            _log.error("plugin failed", **facts)

    def unavailable(self) -> Unavailable:
        """Return the error for calls of a plugin that has failed or stopped."""
        return Unavailable(self.offer.name, lifecycle.move(self.status, lifecycle.stopped()))

    async def ready(self) -> None:
        """Initialize the plugin, or wait until it is initialized. Raise :class:`Unavailable` if that fails."""
        if self.status.state == "registered" and not self._stopping:
            if self._starting is None:
                # In an empty context, so that the plugin does not inherit the first caller's context.
                self._starting = asyncio.get_running_loop().create_task(
                    self._initialize(), context=contextvars.Context()
                )
            # A caller that gives up must not cancel the initialization.
            await asyncio.shield(self._starting)
        if self.status.state != "initialized" or self._stopping:
            raise self.unavailable()

    async def run(
        self,
        tool_name: str,
        args: Mapping[str, Any],
        call: contract.CallContext | None,
        check: background.Check | None = None,
    ) -> Any:
        """Run a tool, after initializing the plugin if necessary.

        ``check`` is awaited directly before the plugin's code runs.
        """
        task: asyncio.Task[Any] = asyncio.ensure_future(self._run(tool_name, args, call, check))
        self._own(task)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            return await task
        except asyncio.CancelledError:
            if self._stopping:
                raise self.unavailable() from None
            raise

    def stop_uninitialized(self) -> None:
        """Stop a plugin that was never initialized."""
        self._stopping = True
        self._move(lifecycle.stopped())

    async def stop(self) -> None:
        """Cancel running calls, shut the plugin down if it was initialized, and close its runtime."""
        self._stopping = True
        pending: list[asyncio.Task[Any]] = [*self._calls]
        if self._starting is not None and not self._starting.done():
            pending.append(self._starting)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=CLOSE_SECONDS)
        if self.status.state == "initialized":
            shut_down = background.call(self._threads, self.plugin.shutdown)
            error, cause = await self._wait_for(shut_down, self._limits.shutdown, "shutdown()")
            if error:
                self.fail(error, cause)
        self._move(lifecycle.stopped())
        close = getattr(self._runtime, "aclose", None)
        if close is not None:
            await self._wait_for(background.call(self._threads, close), CLOSE_SECONDS, "aclose()")

    async def _run(
        self,
        tool_name: str,
        args: Mapping[str, Any],
        call: contract.CallContext | None,
        check: background.Check | None,
    ) -> Any:
        await self.ready()
        contract.CURRENT_CALL.set(call)
        return await background.call(self._threads, self.plugin.execute, tool_name, dict(args), check=check)

    async def _initialize(self) -> None:
        error, cause = await self._wait_for(self._begin(), self._limits.initialize, "initialize()")
        if error:
            self.fail(error, cause)
        else:
            self._move(lifecycle.initialized())

    async def _begin(self) -> None:
        self._runtime = await self._threads.run(self._runtime_for, self.offer.home, self._config)
        await background.call(self._threads, self.plugin.initialize, self._runtime)
        self.late_changes = await self._threads.run(offers.late_changes, self.plugin, self.offer)
        for problem in self.late_changes:
            _log.warning("plugin offers something else since it was initialized", problem=str(problem))

    async def _wait_for(
        self, coroutine: Coroutine[Any, Any, Any], within: float, name: str
    ) -> tuple[str, BaseException | None]:
        """Wait for the coroutine with a time limit. Return what went wrong, if anything, and the exception.

        Time in which other code blocks the loop does not count: the limit is split into short slices, and a slice that
        takes longer counts only as one slice.
        """
        task = asyncio.ensure_future(coroutine)
        self._own(task)
        # Mark the exception as retrieved, in case it fails after the time limit.
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            for _ in range(WAIT_SLICES):
                await asyncio.wait({task}, timeout=within / WAIT_SLICES)
                if task.done():
                    break
        finally:
            is_done = task.done()
            task.cancel()
        if not is_done:
            return f"{name} took longer than {within:g} s", None
        if task.cancelled():
            return f"{name} was cancelled", None
        error = task.exception()
        return (lifecycle.described(error), error) if error else ("", None)

    def _own(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _move(self, to: lifecycle.Status) -> bool:
        with self._moving:
            before = self.status
            self.status = lifecycle.move(before, to)
            return self.status is not before
