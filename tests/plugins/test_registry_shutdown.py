"""The end: it reaches every plugin, whatever one of them does."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.plugins import samples
from toolbelt.core import errors
from toolbelt.plugins import background
from toolbelt.plugins import registry as registries


def test_shutdown_reaches_all_whatever_one_does(make_registry):
    registry = make_registry(shutdown=0.1)
    plugins = [
        samples.Sample("raises", "raises", shutdown=samples.raising(OSError("busy"))),
        samples.Sample("exits", "exits", shutdown=samples.raising(SystemExit())),
        samples.Sample("hangs", "hangs", shutdown=samples.hang),
        samples.Sample("deaf", "deaf", shutdown=samples.hang_whatever_is_said),
        samples.Sample("fine", "fine"),
    ]
    for plugin in plugins:
        registry.register(plugin)
    registry.initialize_sync()

    begun = time.monotonic()
    asyncio.run(registry.shutdown())

    assert time.monotonic() - begun < 10
    assert [plugin.stopped for plugin in plugins] == [1] * 5
    assert {info.name: (info.state, info.error) for info in registry.list_plugins()} == {
        "raises": ("failed", "OSError: busy"),
        "exits": ("failed", "RuntimeError: SystemExit:"),
        "hangs": ("failed", "shutdown() took longer than 0.1 s"),
        "deaf": ("failed", "shutdown() took longer than 0.1 s"),
        "fine": ("stopped", ""),
    }


def test_a_shutdown_that_blocks_the_loop_is_left_behind(make_registry, monkeypatch):
    release = threading.Event()

    async def block(*_):
        release.wait(10)

    monkeypatch.setattr(registries, "GRACE", 0.05)
    monkeypatch.setattr(background, "CLOSE_WITHIN", 0.05)
    registry = make_registry(shutdown=0.1)
    registry.register(samples.Sample(shutdown=block))
    registry.initialize_sync()

    registry.shutdown_sync()
    release.set()

    assert samples.state_of(registry) == (
        "failed",
        "shutdown() took longer than 0.1 s, and the event loop is blocked",
    )


def test_shutdown_happens_once_and_is_not_for_what_never_began(registry, fine):
    begun = samples.Sample()
    broken = samples.Sample("broken", "broken", initialize=samples.raising(OSError("no route")))
    for plugin in (begun, broken):
        registry.register(plugin)
    registry.execute_sync("kb__search", {})
    with pytest.raises(registries.Unavailable):
        registry.execute_sync("broken__search", {})

    registry.shutdown_sync()
    registry.shutdown_sync()

    assert (begun.stopped, fine.stopped, broken.stopped) == (1, 0, 0)
    assert [info.state for info in registry.list_plugins()] == ["stopped", "stopped", "failed"]


def test_a_registry_in_which_nothing_ran_is_shut_down_without_a_thread(registry, fine):
    before = threading.active_count()

    registry.shutdown_sync()

    assert threading.active_count() == before
    assert samples.state_of(registry, "fine")[0] == "stopped"


def test_calls_under_way_are_ended_by_shutdown_and_none_follows(registry):
    begun = threading.Event()

    async def execute(*_):
        begun.set()
        await asyncio.sleep(60)

    registry.register(samples.Sample(execute=execute))
    refused = []

    def ask():
        try:
            registry.execute_sync("kb__search", {})
        except errors.ToolbeltError as error:
            refused.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert begun.wait(2)
    registry.shutdown_sync()
    asking.join(2)

    assert [str(error) for error in refused] == ["The plugin 'knowledge' is stopped."]
    with pytest.raises(registries.Unavailable, match="is stopped"):
        registry.execute_sync("kb__search", {})


def test_a_plugin_that_is_still_getting_ready_is_stopped(registry):
    begun = threading.Event()

    async def slowly(*_):
        begun.set()
        await asyncio.sleep(60)

    plugin = samples.Sample(initialize=slowly)
    registry.register(plugin)
    starting = threading.Thread(target=registry.initialize_sync)
    starting.start()
    assert begun.wait(2)

    registry.shutdown_sync()
    starting.join(2)

    assert not starting.is_alive()
    assert samples.state_of(registry)[0] in ("stopped", "failed")
    assert plugin.stopped == 0


def test_the_runtime_of_a_plugin_is_closed_when_it_has_stopped():
    class Runtime:
        closed = 0

        async def aclose(self):
            self.closed += 1

    made = Runtime()
    registry = registries.ToolPluginRegistry(runtime_for=lambda home, config: made)  # type: ignore[arg-type, return-value]
    registry.register(samples.Sample())
    registry.initialize_sync()
    registry.shutdown_sync()

    assert made.closed == 1


def test_a_runtime_that_cannot_be_made_fails_the_plugin():
    registry = registries.ToolPluginRegistry(runtime_for=samples.raising(OSError("no database")))
    registry.register(samples.Sample())
    registry.initialize_sync()

    assert samples.state_of(registry) == ("failed", "OSError: no database")
    registry.shutdown_sync()
