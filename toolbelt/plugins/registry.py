"""Which plugins run here, which of them has this tool, and what does it answer?

The registry is asked from any thread and from any event loop; what is async has a plain twin, named ``…_sync``. Names
are settled under a lock in which no plugin's code ever runs: that runs on the registry's own loop (background).
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Container, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import errors
from toolbelt.plugins import background, contract, info, local, offers, running

Limits = running.Limits
Unavailable = running.Unavailable

# A limit on the plugins' loop is watched from outside too, in case code blocks that loop; this much later, so that its
# own answer comes first.
GRACE = 2 * running.LET_GO_WITHIN + 1.0


class TimedOut(errors.ToolbeltError):
    """The plugin's author's to put right, or the operator's: the tool did not answer in time."""

    code = "timed-out"

    def __init__(self, tool_name: str, within: float) -> None:
        self.tool_name, self.within = tool_name, within
        super().__init__(f"{tool_name} did not answer within {within:g} s.")


@dataclass(slots=True, kw_only=True)
class _Entry:
    """A plugin in the registry, and how it came in: ``partial`` ones may lose tools."""

    running: running.Running
    partial: bool
    problems: tuple[errors.Problem, ...]

    @property
    def info(self) -> info.PluginInfo:
        return info.of(self.running.offer, self.running.life, self.problems)


class ToolPluginRegistry:
    """All plugins of a process. Each is initialized at its first call, or all together by :meth:`initialize`."""

    def __init__(
        self, *, runtime_for: running.RuntimeFor = local.LocalRuntime, limits: Limits | None = None
    ) -> None:
        self._runtime_for, self._limits = runtime_for, limits or Limits()
        self._loop = background.Loop()
        self._lock = threading.Lock()
        self._closed = False
        # In the order in which they came; those that could not be loaded are known by what is said of them.
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
        """Add a plugin and its tools, or raise :class:`errors.Invalid` with everything that stands against it.

        ``source`` says where it comes from, in messages. A ``partial`` plugin, whose tools others name, is registered
        without the tools that have problems.
        """
        source = source or offers.source_of(plugin)
        while True:
            owners, seen = self._claimed()
            examined = offers.examine(plugin, source, owners)
            _refuse_unsound(examined, partial)
            with self._lock:
                # Somebody else may have taken a name in the meantime: then look again.
                if self._changes == seen:
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
        """List a plugin that could not even be registered, so that operators see it and why."""
        found = info.PluginInfo(name=name, source=source, state="failed", error=error)
        with self._lock:
            self._entries.append(found)
        return found

    def refresh(self, name: str) -> info.PluginInfo:
        """Read again what a plugin offers; raise as :meth:`register` does, and then all stays as it was."""
        while True:
            entry = self._named(name)
            before = entry.running.offer
            owners, seen = self._claimed(without=before)
            examined = offers.examine(entry.running.plugin, before.source, owners)
            _refuse_unsound(examined, entry.partial)
            if (examined.offer.name, examined.offer.home) != (before.name, before.home):
                message = f"It was registered under the namespace {before.home!r}: a plugin keeps its names."
                raise errors.Invalid([errors.Problem(path=name, message=message)])
            with self._lock:
                if self._changes == seen:
                    for key in before.names():
                        self._owners.pop(key, None)
                    for tool in before.tools:
                        self._by_tool.pop(tool.name, None)
                    entry.running.offer, entry.problems = examined.offer, examined.left_out
                    self._claim(entry)
                    return entry.info

    def to_tool_definitions(self) -> list[contract.ToolDefinition]:
        """Give the tools that can be called: of plugins that are neither failed nor stopped, in their order."""
        return [
            tool
            for plugin in self.list_plugins()
            if plugin.state in ("registered", "initialized")
            for tool in plugin.tools
        ]

    def resolve_tool(self, tool_name: str) -> contract.ToolPlugin | None:
        """Give the plugin that has the tool, None where none has."""
        with self._lock:
            entry = self._by_tool.get(tool_name)
        return entry.running.plugin if entry else None

    def list_plugins(self) -> list[info.PluginInfo]:
        """Give all plugins in the order in which they came, failed ones too.

        A failure that was recorded under the name of a plugin that is here is given under its source.
        """
        with self._lock:
            here = {entry.running.offer.name for entry in self._entries if isinstance(entry, _Entry)}
            return [
                _apart(entry, here) if isinstance(entry, info.PluginInfo) else entry.info
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
        """Return what the tool answers; ``call`` is what its plugin finds as ``runtime.call``, ``within`` in seconds.

        ``check`` is awaited on the plugins' event loop, directly before the plugin's code runs. Raises
        :class:`errors.NotFound`, :class:`Unavailable`, :class:`TimedOut`, whatever ``check`` raises, and whatever the
        plugin raises: of that, a :class:`contract.ToolError` is for the model.
        """
        within = self._limits.call if within is None else within
        plugin = self._able(tool_name)
        try:
            return await self._loop.answer(plugin.run(tool_name, args, call, check), within)
        except background.Late:
            raise TimedOut(tool_name, within) from None

    def execute_sync(
        self,
        tool_name: str,
        args: Mapping[str, Any],
        *,
        call: contract.CallContext | None = None,
        within: float | None = None,
    ) -> Any:
        """Do as :meth:`execute` does, in a thread that may block."""
        within = self._limits.call if within is None else within
        plugin = self._able(tool_name)
        try:
            return self._loop.answer_sync(plugin.run(tool_name, args, call), within)
        except background.Late:
            raise TimedOut(tool_name, within) from None

    async def initialize(self) -> None:
        """Initialize every plugin at once. Raises nothing: one that cannot get ready has failed, and says why."""
        await asyncio.to_thread(self.initialize_sync)

    def initialize_sync(self) -> None:
        """Do as :meth:`initialize` does, in a thread that may block."""
        plugins = self._running()
        within = self._limits.initialize
        try:
            self._loop.answer_sync(_together(plugin.ready() for plugin in plugins), within + GRACE)
        except background.Late:
            # Somebody blocks the loop. The others have not had their time yet: they get it when the loop is free.
            blocking = self._loop.current_task()
            for plugin in plugins:
                if plugin.owns(blocking):
                    plugin.fail(f"initialize() took longer than {within:g} s, and blocks the event loop")

    async def shutdown(self) -> None:
        """Stop every plugin at once, whatever one of them does. Calls under way are ended, and none can follow."""
        await asyncio.to_thread(self.shutdown_sync)

    def shutdown_sync(self) -> None:
        """Do as :meth:`shutdown` does, in a thread that may block."""
        with self._lock:
            was_closed, self._closed = self._closed, True
        if was_closed:
            return
        plugins, within = self._running(), self._limits.shutdown
        try:
            if self._loop.is_started:
                self._loop.answer_sync(_together(plugin.stop() for plugin in plugins), within + GRACE)
        except background.Late:
            for plugin in plugins:
                if plugin.life.state == "initialized":
                    plugin.fail(f"shutdown() took longer than {within:g} s, and the event loop is blocked")
        for plugin in plugins:
            plugin.stop_unbegun()
        self._loop.close()

    def _running(self) -> list[running.Running]:
        with self._lock:
            return [entry.running for entry in self._entries if isinstance(entry, _Entry)]

    def _able(self, tool_name: str) -> running.Running:
        """Find the plugin that is to run the tool; one whose life is over need not be asked."""
        with self._lock:
            entry, is_closed = self._by_tool.get(tool_name), self._closed
            known = () if entry else tuple(self._by_tool)
        if entry is None:
            raise errors.NotFound("tool", tool_name, known)
        if is_closed or entry.running.life.is_over:
            raise entry.running.unavailable()
        return entry.running

    def _named(self, name: str) -> _Entry:
        with self._lock:
            entries = {e.running.offer.name: e for e in self._entries if isinstance(e, _Entry)}
        if name not in entries:
            raise errors.NotFound("plugin", name, entries)
        return entries[name]

    def _claimed(self, without: offers.Offer | None = None) -> tuple[dict[tuple[str, str], str], int]:
        """Give the names that are taken, and the number of the change that this is the state after."""
        own = set(without.names()) if without else set()
        with self._lock:
            if self._closed:
                raise errors.Refused("The registry is shut down: make a new one.")
            return {name: owner for name, owner in self._owners.items() if name not in own}, self._changes

    def _claim(self, entry: _Entry) -> None:
        offer = entry.running.offer
        self._owners.update(dict.fromkeys(offer.names(), offer.owner))
        self._by_tool.update({tool.name: entry for tool in offer.tools})
        self._changes += 1


def _apart(failure: info.PluginInfo, here: Container[str]) -> info.PluginInfo:
    # Else a plugin that is listed twice would be taken for failed, and be switched off for that.
    return dataclasses.replace(failure, name=failure.source) if failure.name in here else failure


async def _together(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    # What one of them raises is said of its plugin already.
    await asyncio.gather(*coroutines, return_exceptions=True)


def _refuse_unsound(examined: offers.Examined, partial: bool) -> None:
    problems = examined.against if partial else (*examined.against, *examined.left_out)
    if problems:
        raise errors.Invalid(problems)
