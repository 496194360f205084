"""The registry of the plugins of a process: registration, lookup and calls of their tools.

It can be used from any thread and any event loop; async functions have synchronous versions, named ``…_sync``. Names
are claimed under a lock, within which no plugin's code runs: that runs on the registry's own event loop (see
background).
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Container, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import errors
from toolbelt.plugins import agent_adapter, background, contract, info, local, offers, running

Limits = running.Limits
Unavailable = running.Unavailable

# Time limits on the plugins' loop are also enforced from outside, in case code blocks the loop; this much later, so
# that the loop's own result normally comes first.
GRACE = 2 * running.CLOSE_SECONDS + 1.0


class TimedOutError(errors.ToolbeltError):
    """The tool did not respond in time. The plugin's author or an operator can fix this."""

    code = "timed-out"

    def __init__(self, tool_name: str, within: float) -> None:
        self.tool_name, self.within = tool_name, within
        super().__init__(f"{tool_name} did not answer within {within:g} s.")


@dataclass(slots=True, kw_only=True)
class _Entry:
    """A plugin in the registry. ``partial`` plugins may be registered without some of their tools."""

    running: running.Running
    partial: bool
    problems: tuple[errors.Problem, ...]

    @property
    def info(self) -> info.PluginInfo:
        # What a partial plugin offered before is not known: tools were left out.
        late = () if self.partial else self.running.late_changes
        return info.of(self.running.offer, self.running.status, (*self.problems, *late))


class ToolPluginRegistry:
    """All plugins of a process. Each is initialized at its first call, or all by :meth:`initialize`."""

    def __init__(
        self, *, runtime_for: running.RuntimeFor = local.LocalRuntime, limits: Limits | None = None
    ) -> None:
        self._runtime_for, self._limits = runtime_for, limits or Limits()
        self._loop = background.Loop()
        self._lock = threading.Lock()
        self._closed = False
        # In the order of registration. Plugins that could not be loaded only have information.
        self._entries: list[_Entry | info.PluginInfo] = []
        self._owners: dict[tuple[str, str], str] = {}
        self._by_tool: dict[str, _Entry] = {}
        self._changes = 0

    def register(
        self,
        plugin: contract.ToolPlugin,
        *,
        source: str = "",
        config: Mapping[str, Any] | None = None,
        partial: bool = False,
    ) -> info.PluginInfo:
        """Add a plugin and its tools, or raise :class:`errors.Invalid` with all problems.

        ``source`` is where it comes from, for messages. A ``partial`` plugin is registered without the tools that have
        problems.
        """
        source = source or offers.source_of(plugin)
        plugin = agent_adapter.adapt(plugin)
        while True:
            owners, changes = self._claimed()
            examined = offers.examine(plugin, source, owners)
            _raise_problems(examined, partial)
            with self._lock:
                # If a name was claimed in the meantime, check again.
                if self._changes == changes:
                    running_plugin = running.Running(
                        plugin,
                        examined.offer,
                        config=dict(config or {}),
                        runtime_for=self._runtime_for,
                        limits=self._limits,
                    )
                    entry = _Entry(running=running_plugin, partial=partial, problems=examined.left_out)
                    self._entries.append(entry)
                    self._claim(entry)
                    return entry.info

    def record_failure(self, name: str, *, source: str, error: str) -> info.PluginInfo:
        """Record a plugin that could not be registered, so that operators see it and its error."""
        failure = info.PluginInfo(name=name, source=source, state="failed", error=error)
        with self._lock:
            self._entries.append(failure)
        return failure

    def refresh(self, name: str) -> info.PluginInfo:
        """Read what a plugin offers again. Raise like :meth:`register`, without changing anything."""
        while True:
            entry = self._named(name)
            before = entry.running.offer
            owners, changes = self._claimed(without=before)
            examined = offers.examine(entry.running.plugin, before.source, owners)
            _raise_problems(examined, entry.partial)
            if (examined.offer.name, examined.offer.home) != (before.name, before.home):
                message = (
                    f"It was registered with the namespace {before.home!r}, which a plugin cannot change."
                )
                raise errors.Invalid([errors.Problem(path=name, message=message)])
            with self._lock:
                if self._changes == changes:
                    for key in before.names():
                        self._owners.pop(key, None)
                    for tool in before.tools:
                        self._by_tool.pop(tool.name, None)
                    entry.running.offer, entry.problems = examined.offer, examined.left_out
                    entry.running.late_changes = ()
                    self._claim(entry)
                    return entry.info

    def to_tool_definitions(self) -> list[contract.ToolDefinition]:
        """Return the tools of all plugins that are neither failed nor stopped, in order."""
        return [
            tool
            for plugin in self.list_plugins()
            if plugin.state in ("registered", "initialized")
            for tool in plugin.tools
        ]

    def resolve_tool(self, tool_name: str) -> contract.ToolPlugin | None:
        """Return the plugin that has the tool, as it was registered, or None."""
        with self._lock:
            entry = self._by_tool.get(tool_name)
        plugin: contract.ToolPlugin | None = agent_adapter.original(entry.running.plugin) if entry else None
        return plugin

    def list_plugins(self) -> list[info.PluginInfo]:
        """Return all plugins in the order of registration, including failed plugins.

        A recorded failure with the name of a registered plugin is listed by its source instead.
        """
        with self._lock:
            here = {entry.running.offer.name for entry in self._entries if isinstance(entry, _Entry)}
            return [
                _with_unique_name(entry, here) if isinstance(entry, info.PluginInfo) else entry.info
                for entry in self._entries
            ]

    async def execute(
        self,
        tool_name: str,
        args: Mapping[str, Any],
        *,
        call: contract.CallContext | None = None,
        within: float | None = None,
        check: background.Check | None = None,
    ) -> Any:
        """Return the tool's result. ``call`` becomes the plugin's ``runtime.call``; ``within`` is in seconds.

        ``check`` is awaited on the plugins' event loop, directly before the plugin's code runs. Raise
        :class:`errors.NotFound`, :class:`Unavailable`, :class:`TimedOutError`, and everything that ``check`` and the
        plugin raise; a :class:`contract.ToolError` is for the model.
        """
        within = self._limits.call if within is None else within
        plugin = self._runnable(tool_name)
        try:
            return await self._loop.run(plugin.run(tool_name, args, call, check), within)
        except background.DeadlineError:
            raise TimedOutError(tool_name, within) from None

    def execute_sync(
        self,
        tool_name: str,
        args: Mapping[str, Any],
        *,
        call: contract.CallContext | None = None,
        within: float | None = None,
    ) -> Any:
        """Do the same as :meth:`execute`, blocking the calling thread."""
        within = self._limits.call if within is None else within
        plugin = self._runnable(tool_name)
        try:
            return self._loop.run_sync(plugin.run(tool_name, args, call), within)
        except background.DeadlineError:
            raise TimedOutError(tool_name, within) from None

    async def initialize(self) -> None:
        """Initialize all plugins concurrently. Never raises: a plugin that cannot be initialized has failed."""
        await asyncio.to_thread(self.initialize_sync)

    def initialize_sync(self) -> None:
        """Do the same as :meth:`initialize`, blocking the calling thread."""
        plugins = self._running()
        within = self._limits.initialize
        try:
            self._loop.run_sync(_gather(plugin.ready() for plugin in plugins), within + GRACE)
        except background.DeadlineError:
            # A plugin blocks the loop. The others continue when the loop is free.
            blocking = self._loop.current_task()
            for plugin in plugins:
                if plugin.owns(blocking):
                    plugin.fail(f"initialize() took longer than {within:g} s, and blocks the event loop")

    async def shutdown(self) -> None:
        """Stop all plugins concurrently. Running calls are cancelled, and later calls are refused."""
        await asyncio.to_thread(self.shutdown_sync)

    def shutdown_sync(self) -> None:
        """Do the same as :meth:`shutdown`, blocking the calling thread."""
        with self._lock:
            was_closed, self._closed = self._closed, True
        if was_closed:
            return
        plugins, within = self._running(), self._limits.shutdown
        try:
            if self._loop.is_started:
                self._loop.run_sync(_gather(plugin.stop() for plugin in plugins), within + GRACE)
        except background.DeadlineError:
            for plugin in plugins:
                if plugin.status.state == "initialized":
                    plugin.fail(f"shutdown() took longer than {within:g} s, and the event loop is blocked")
        for plugin in plugins:
            plugin.stop_uninitialized()
        self._loop.close()

    def _running(self) -> list[running.Running]:
        with self._lock:
            return [entry.running for entry in self._entries if isinstance(entry, _Entry)]

    def _runnable(self, tool_name: str) -> running.Running:
        """Return the plugin that runs the tool. Raise Unavailable if it has failed or stopped."""
        with self._lock:
            entry, is_closed = self._by_tool.get(tool_name), self._closed
            tool_names = () if entry else tuple(self._by_tool)
        if entry is None:
            raise errors.NotFound("tool", tool_name, tool_names)
        if is_closed or entry.running.status.is_final:
            raise entry.running.unavailable()
        return entry.running

    def _named(self, name: str) -> _Entry:
        with self._lock:
            entries = {e.running.offer.name: e for e in self._entries if isinstance(e, _Entry)}
        if name not in entries:
            raise errors.NotFound("plugin", name, entries)
        return entries[name]

    def _claimed(self, without: offers.Offer | None = None) -> tuple[dict[tuple[str, str], str], int]:
        """Return the names that are taken, and the number of changes so far."""
        without_names = set(without.names()) if without else set()
        with self._lock:
            if self._closed:
                raise errors.Refused("The registry is shut down. Create a new one.")
            return {
                name: owner for name, owner in self._owners.items() if name not in without_names
            }, self._changes

    def _claim(self, entry: _Entry) -> None:
        offer = entry.running.offer
        self._owners.update(dict.fromkeys(offer.names(), offer.owner))
        self._by_tool.update({tool.name: entry for tool in offer.tools})
        self._changes += 1


def _with_unique_name(failure: info.PluginInfo, here: Container[str]) -> info.PluginInfo:
    # Otherwise a plugin that is listed twice would be treated as failed, and switched off.
    return dataclasses.replace(failure, name=failure.source) if failure.name in here else failure


async def _gather(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    # Exceptions are already recorded with their plugin.
    await asyncio.gather(*coroutines, return_exceptions=True)


def _raise_problems(examined: offers.Examined, partial: bool) -> None:
    problems = examined.fatal if partial else (*examined.fatal, *examined.left_out)
    if problems:
        raise errors.Invalid(problems)
