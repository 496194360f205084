"""Tests that shutdown reaches every plugin, even if some of them misbehave."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.plugins import samples
from toolbelt.core import errors
from toolbelt.plugins import background
from toolbelt.plugins import registry as registries


def test_shutdown_reaches_every_plugin_even_if_others_fail_or_hang(make_registry):
    registry = make_registry(shutdown=0.1)
    plugins = [
        samples.Sample("raises", "raises", shutdown=samples.raising(OSError("busy"))),
        samples.Sample("exits", "exits", shutdown=samples.raising(SystemExit())),
        samples.Sample("hangs", "hangs", shutdown=samples.hang),
        samples.Sample("deaf", "deaf", shutdown=samples.hang_despite_cancellation),
        samples.Sample("fine", "fine"),
    ]
    for plugin in plugins:
        registry.register(plugin)
    registry.initialize_sync()

    start_time = time.monotonic()
    asyncio.run(registry.shutdown())

    assert time.monotonic() - start_time < 10
    assert [plugin.stopped for plugin in plugins] == [1] * 5
    assert {info.name: (info.state, info.error) for info in registry.list_plugins()} == {
        "raises": ("failed", "OSError: busy"),
        "exits": ("failed", "RuntimeError: SystemExit:"),
        "hangs": ("failed", "shutdown() took longer than 0.1 s"),
        "deaf": ("failed", "shutdown() took longer than 0.1 s"),
        "fine": ("stopped", ""),
    }


def test_a_shutdown_that_blocks_the_loop_is_abandoned(make_registry, monkeypatch):
    release = threading.Event()

    async def block(*_):
        release.wait(10)

    monkeypatch.setattr(registries, "GRACE", 0.05)
    monkeypatch.setattr(background, "CLOSE_SECONDS", 0.05)
    registry = make_registry(shutdown=0.1)
    registry.register(samples.Sample(shutdown=block))
    registry.initialize_sync()

    registry.shutdown_sync()
    release.set()

    assert samples.state_of(registry) == (
        "failed",
        "shutdown() took longer than 0.1 s, and the event loop is blocked",
    )


def test_only_initialized_plugins_are_shut_down_and_only_once(registry, fine):
    initialized = samples.Sample()
    broken = samples.Sample("broken", "broken", initialize=samples.raising(OSError("no route")))
    for plugin in (initialized, broken):
        registry.register(plugin)
    registry.execute_sync("kb__search", {})
    with pytest.raises(registries.Unavailable):
        registry.execute_sync("broken__search", {})

    registry.shutdown_sync()
    registry.shutdown_sync()

    assert (initialized.stopped, fine.stopped, broken.stopped) == (1, 0, 0)
    assert [info.state for info in registry.list_plugins()] == ["stopped", "stopped", "failed"]


def test_shutting_down_an_unused_registry_starts_no_thread(registry, fine):
    before = threading.active_count()

    registry.shutdown_sync()

    assert threading.active_count() == before
    assert samples.state_of(registry, "fine")[0] == "stopped"


def test_shutdown_ends_running_calls_and_refuses_later_ones(registry):
    started = threading.Event()

    async def execute(*_):
        started.set()
        await asyncio.sleep(60)

    registry.register(samples.Sample(execute=execute))
    failures = []

    def call():
        try:
            registry.execute_sync("kb__search", {})
        except errors.ToolbeltError as error:
            failures.append(error)

    calling = threading.Thread(target=call)
    calling.start()
    assert started.wait(2)
    registry.shutdown_sync()
    calling.join(2)

    assert [str(error) for error in failures] == ["The plugin 'knowledge' is stopped."]
    with pytest.raises(registries.Unavailable, match="is stopped"):
        registry.execute_sync("kb__search", {})


def test_shutdown_cancels_a_running_initialization(registry):
    started = threading.Event()

    async def slowly(*_):
        started.set()
        await asyncio.sleep(60)

    plugin = samples.Sample(initialize=slowly)
    registry.register(plugin)
    starting = threading.Thread(target=registry.initialize_sync)
    starting.start()
    assert started.wait(2)

    registry.shutdown_sync()
    starting.join(2)

    assert not starting.is_alive()
    assert samples.state_of(registry)[0] in ("stopped", "failed")
    assert plugin.stopped == 0


def test_the_runtime_is_closed_after_its_plugin_has_stopped():
    class Runtime:
        closed = 0

        async def aclose(self):
            self.closed += 1

    runtime = Runtime()
    registry = registries.ToolPluginRegistry(runtime_for=lambda home, config: runtime)  # type: ignore[arg-type, return-value]
    registry.register(samples.Sample())
    registry.initialize_sync()
    registry.shutdown_sync()

    assert runtime.closed == 1


def test_a_runtime_that_cannot_be_created_fails_the_plugin():
    registry = registries.ToolPluginRegistry(runtime_for=samples.raising(OSError("no database")))
    registry.register(samples.Sample())
    registry.initialize_sync()

    assert samples.state_of(registry) == ("failed", "OSError: no database")
    registry.shutdown_sync()
