"""Plugins that raise, samples.hang, block or exit: one is lost, the others, the registry and the server are not."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

from tests.plugins import samples
from toolbelt.plugins import background, contract
from toolbelt.plugins import registry as registries


@pytest.mark.parametrize(
    "error", [OSError("no route"), SystemExit(3), StopIteration(), asyncio.CancelledError()]
)
def test_an_initialize_that_raises_fails_its_plugin_alone(registry, fine, error):
    async def raise_it(*_):
        raise error

    registry.register(samples.Sample("plain", "plain", initialize=samples.raising(error)))
    registry.register(samples.Sample("loop", "loop", initialize=raise_it))

    registry.initialize_sync()

    for name in ("plain", "loop"):
        state, said = samples.state_of(registry, name)
        assert state == "failed"
        assert type(error).__name__ in said
    assert registry.execute_sync("fine__search", {}) == {"asked": {}}


def test_a_call_of_a_failed_plugin_is_unavailable_and_says_why(registry, fine):
    registry.register(samples.Sample(initialize=samples.raising(OSError("no route"))))

    with pytest.raises(registries.Unavailable, match="has failed: OSError: no route"):
        registry.execute_sync("kb__search", {})
    with pytest.raises(registries.Unavailable, match="has failed: OSError: no route") as refused:
        registry.execute_sync("kb__search", {})
    assert refused.value.life.state == "failed"
    assert [tool.name for tool in registry.to_tool_definitions()] == ["fine__search"]


@pytest.mark.parametrize("stuck", [samples.hang, samples.hang_whatever_is_said])
def test_an_initialize_that_hangs_fails_when_its_time_is_up(make_registry, stuck):
    registry = make_registry(initialize=0.05, shutdown=0.05)
    registry.register(samples.Sample(initialize=stuck))
    registry.register(samples.Sample("fine", "fine"))

    begun = time.monotonic()
    registry.initialize_sync()

    assert time.monotonic() - begun < 10
    assert samples.state_of(registry) == ("failed", "initialize() took longer than 0.05 s")
    assert samples.state_of(registry, "fine")[0] == "initialized"


def test_a_plain_initialize_that_hangs_fails_when_its_time_is_up(make_registry):
    registry, release = make_registry(initialize=0.05), threading.Event()
    registry.register(samples.Sample(initialize=lambda runtime: release.wait(5) and None))

    with pytest.raises(registries.Unavailable, match="took longer"):
        registry.execute_sync("kb__search", {})
    release.set()
    time.sleep(0.05)

    assert samples.state_of(registry)[0] == "failed"


def test_an_initialize_that_blocks_the_loop_is_failed_from_outside(make_registry, monkeypatch):
    release = threading.Event()

    async def block(*_):
        release.wait(10)

    monkeypatch.setattr(registries, "GRACE", 0.2)
    registry = make_registry(initialize=1.0)
    registry.register(samples.Sample(initialize=block))
    registry.register(samples.Sample("fine", "fine"))

    registry.initialize_sync()
    release.set()

    assert samples.state_of(registry) == (
        "failed",
        "initialize() took longer than 1 s, and blocks the event loop",
    )
    assert registry.execute_sync("fine__search", {}) == {"asked": {}}


def test_a_call_is_answered_in_time_even_while_the_loop_is_blocked(registry, fine):
    begun, release = threading.Event(), threading.Event()

    async def block(*_):
        begun.set()
        release.wait(10)

    registry.register(samples.Sample(execute=block))
    registry.initialize_sync()
    blocking = threading.Thread(target=registry.execute_sync, args=("kb__search", {}))
    blocking.start()
    assert begun.wait(5)

    with pytest.raises(registries.TimedOutError, match=r"fine__search did not answer within 0\.05 s"):
        registry.execute_sync("fine__search", {}, within=0.05)
    with pytest.raises(registries.TimedOutError):
        asyncio.run(registry.execute("fine__search", {}, within=0.05))
    release.set()
    blocking.join()


def test_a_tool_that_takes_too_long_is_told_to_stop(registry):
    told = threading.Event()

    async def execute(*_):
        try:
            await asyncio.sleep(60)
        finally:
            told.set()

    registry.register(samples.Sample(execute=execute))

    with pytest.raises(registries.TimedOutError) as late:
        registry.execute_sync("kb__search", {}, within=0.05)
    assert (late.value.code, late.value.tool_name) == ("timed-out", "kb__search")
    assert told.wait(2)


def test_a_limit_holds_for_every_call_that_names_none(make_registry):
    registry = make_registry(call=0.05)
    registry.register(samples.Sample(execute=samples.hang))

    with pytest.raises(registries.TimedOutError):
        registry.execute_sync("kb__search", {})


def test_a_caller_that_is_cancelled_cancels_its_call(registry):
    begun, told = threading.Event(), threading.Event()

    async def execute(*_):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            told.set()

    registry.register(samples.Sample(execute=execute))

    async def give_up() -> None:
        asking = asyncio.create_task(registry.execute("kb__search", {}))
        await asyncio.to_thread(begun.wait, 2)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(give_up())

    assert told.wait(2)


def test_what_a_tool_raises_reaches_the_caller(registry):
    registry.register(
        samples.Sample("said", "said", execute=samples.raising(contract.ToolError("There is no such page.")))
    )
    registry.register(samples.Sample("broken", "broken", execute=samples.raising(ZeroDivisionError("x"))))

    with pytest.raises(contract.ToolError, match="no such page") as failed:
        registry.execute_sync("said__search", {})
    assert failed.value.code == "tool-failed"
    with pytest.raises(ZeroDivisionError):
        asyncio.run(registry.execute("broken__search", {}))
    assert samples.state_of(registry, "broken")[0] == "initialized"


def test_a_tools_own_timeout_is_its_own(registry):
    registry.register(samples.Sample(execute=samples.raising(TimeoutError("upstream"))))

    with pytest.raises(TimeoutError, match="upstream"):
        registry.execute_sync("kb__search", {})


@pytest.mark.parametrize("plain", [True, False])
def test_a_tool_that_exits_the_process_only_fails(registry, fine, plain):
    async def leave(*_):
        sys.exit("bye")

    registry.register(samples.Sample(execute=samples.raising(SystemExit("bye")) if plain else leave))

    with pytest.raises(RuntimeError, match="SystemExit: bye"):
        registry.execute_sync("kb__search", {})
    assert registry.execute_sync("fine__search", {}) == {"asked": {}}


def test_a_task_of_a_plugins_own_that_exits_the_process_does_not_end_the_loop(registry, fine):
    async def leave() -> None:
        sys.exit("bye")

    async def execute(*_):
        left = asyncio.get_running_loop().create_task(leave())
        await asyncio.wait({left}, timeout=0.1)
        return str(left.exception())

    registry.register(samples.Sample(execute=execute))

    assert registry.execute_sync("kb__search", {}) == "bye"
    assert registry.execute_sync("fine__search", {}) == {"asked": {}}


def test_a_tool_that_lets_out_a_cancellation_does_not_cancel_its_caller(registry):
    async def execute(*_):
        raise asyncio.CancelledError

    registry.register(samples.Sample(execute=execute))

    with pytest.raises(RuntimeError, match="CancelledError"):
        asyncio.run(registry.execute("kb__search", {}))


def test_threads_that_hang_are_their_own_plugins(registry, fine, monkeypatch):
    monkeypatch.setattr(background, "MAX_THREADS", 2)
    release = threading.Event()
    registry.register(samples.Sample(execute=lambda *_: release.wait(5)))
    registry.initialize_sync()

    for _ in range(3):
        with pytest.raises(registries.TimedOutError):
            registry.execute_sync("kb__search", {}, within=0.05)
    assert registry.execute_sync("fine__search", {}) == {"asked": {}}
    release.set()
    assert registry.execute_sync("kb__search", {}) is True


def test_the_plugins_own_loop_cannot_wait_for_itself(registry, fine):
    async def execute(*_):
        return registry.execute_sync("fine__search", {})

    async def ask_another(*_):
        return await registry.execute("fine__search", {"from": "another"})

    registry.register(samples.Sample("sync", "sync", execute=execute))
    registry.register(samples.Sample("async", "async", execute=ask_another))

    with pytest.raises(TypeError, match="use the async form"):
        registry.execute_sync("sync__search", {})
    assert registry.execute_sync("async__search", {}) == {"asked": {"from": "another"}}


def test_a_failure_is_logged_with_its_traceback_and_without_what_variables_held(registry, caplog):
    def initialize(runtime):
        key = runtime.config["api_key"]
        raise OSError(f"{len(key)} letters")

    registry.register(samples.Sample(initialize=initialize), config={"api_key": "hush-hush"})

    registry.initialize_sync()

    [event] = [record.msg for record in caplog.records if record.name == "toolbelt.plugins.running"]
    assert (event["event"], event["plugin"], event["error"]) == (
        "plugin failed",
        "knowledge",
        "OSError: 9 letters",
    )
    assert "in initialize" in event["traceback"]
    assert "hush-hush" not in str(event)
    assert "exc_info" not in event
