"""Tests that plugins which raise, hang, block or exit harm neither other plugins nor the registry nor the server."""

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
def test_an_initialize_that_raises_fails_only_its_plugin(registry, fine, error):
    async def raise_error(*_):
        raise error

    registry.register(samples.Sample("plain", "plain", initialize=samples.raising(error)))
    registry.register(samples.Sample("loop", "loop", initialize=raise_error))

    registry.initialize_sync()

    for name in ("plain", "loop"):
        state, error_text = samples.state_of(registry, name)
        assert state == "failed"
        assert type(error).__name__ in error_text
    assert registry.execute_sync("fine__search", {}) == {"asked": {}}


def test_a_call_to_a_failed_plugin_is_refused_with_the_reason(registry, fine):
    registry.register(samples.Sample(initialize=samples.raising(OSError("no route"))))

    with pytest.raises(registries.Unavailable, match="has failed: OSError: no route"):
        registry.execute_sync("kb__search", {})
    with pytest.raises(registries.Unavailable, match="has failed: OSError: no route") as raised:
        registry.execute_sync("kb__search", {})
    assert raised.value.status.state == "failed"
    assert [tool.name for tool in registry.to_tool_definitions()] == ["fine__search"]


@pytest.mark.parametrize("hang", [samples.hang, samples.hang_despite_cancellation])
def test_an_initialize_that_hangs_fails_after_its_timeout(make_registry, hang):
    registry = make_registry(initialize=0.05, shutdown=0.05)
    registry.register(samples.Sample(initialize=hang))
    registry.register(samples.Sample("fine", "fine"))

    start_time = time.monotonic()
    registry.initialize_sync()

    assert time.monotonic() - start_time < 10
    assert samples.state_of(registry) == ("failed", "initialize() took longer than 0.05 s")
    assert samples.state_of(registry, "fine")[0] == "initialized"


def test_a_plain_initialize_that_hangs_fails_after_its_timeout(make_registry):
    registry, release = make_registry(initialize=0.05), threading.Event()
    registry.register(samples.Sample(initialize=lambda runtime: release.wait(5) and None))

    with pytest.raises(registries.Unavailable, match="took longer"):
        registry.execute_sync("kb__search", {})
    release.set()
    time.sleep(0.05)

    assert samples.state_of(registry)[0] == "failed"


def test_an_initialize_that_blocks_the_loop_fails_after_its_timeout(make_registry, monkeypatch):
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


def test_calls_time_out_even_while_the_loop_is_blocked(registry, fine):
    started, release = threading.Event(), threading.Event()

    async def block(*_):
        started.set()
        release.wait(10)

    registry.register(samples.Sample(execute=block))
    registry.initialize_sync()
    blocked_call = threading.Thread(target=registry.execute_sync, args=("kb__search", {}))
    blocked_call.start()
    assert started.wait(5)

    with pytest.raises(registries.TimedOutError, match=r"fine__search did not answer within 0\.05 s"):
        registry.execute_sync("fine__search", {}, within=0.05)
    with pytest.raises(registries.TimedOutError):
        asyncio.run(registry.execute("fine__search", {}, within=0.05))
    release.set()
    blocked_call.join()


def test_a_tool_that_exceeds_its_time_limit_is_cancelled(registry):
    cancelled = threading.Event()

    async def execute(*_):
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    registry.register(samples.Sample(execute=execute))

    with pytest.raises(registries.TimedOutError) as raised:
        registry.execute_sync("kb__search", {}, within=0.05)
    assert (raised.value.code, raised.value.tool_name) == ("timed-out", "kb__search")
    assert cancelled.wait(2)


def test_the_default_time_limit_applies_to_calls_without_their_own(make_registry):
    registry = make_registry(call=0.05)
    registry.register(samples.Sample(execute=samples.hang))

    with pytest.raises(registries.TimedOutError):
        registry.execute_sync("kb__search", {})


def test_cancelling_the_caller_cancels_the_call(registry):
    started, cancelled = threading.Event(), threading.Event()

    async def execute(*_):
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    registry.register(samples.Sample(execute=execute))

    async def give_up() -> None:
        call = asyncio.create_task(registry.execute("kb__search", {}))
        await asyncio.to_thread(started.wait, 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(give_up())

    assert cancelled.wait(2)


def test_an_exception_of_a_tool_reaches_the_caller(registry):
    registry.register(
        samples.Sample("said", "said", execute=samples.raising(contract.ToolError("There is no such page.")))
    )
    registry.register(samples.Sample("broken", "broken", execute=samples.raising(ZeroDivisionError("x"))))

    with pytest.raises(contract.ToolError, match="no such page") as raised:
        registry.execute_sync("said__search", {})
    assert raised.value.code == "tool-failed"
    with pytest.raises(ZeroDivisionError):
        asyncio.run(registry.execute("broken__search", {}))
    assert samples.state_of(registry, "broken")[0] == "initialized"


def test_a_timeout_error_raised_by_a_tool_is_not_the_registrys_timeout(registry):
    registry.register(samples.Sample(execute=samples.raising(TimeoutError("upstream"))))

    with pytest.raises(TimeoutError, match="upstream"):
        registry.execute_sync("kb__search", {})


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_tool_that_calls_sys_exit_fails_only_its_call(registry, fine, is_plain):
    async def exit_process(*_):
        sys.exit("bye")

    registry.register(
        samples.Sample(execute=samples.raising(SystemExit("bye")) if is_plain else exit_process)
    )

    with pytest.raises(RuntimeError, match="SystemExit: bye"):
        registry.execute_sync("kb__search", {})
    assert registry.execute_sync("fine__search", {}) == {"asked": {}}


def test_a_background_task_that_calls_sys_exit_does_not_end_the_loop(registry, fine):
    async def exit_process() -> None:
        sys.exit("bye")

    async def execute(*_):
        task = asyncio.get_running_loop().create_task(exit_process())
        await asyncio.wait({task}, timeout=0.1)
        return str(task.exception())

    registry.register(samples.Sample(execute=execute))

    assert registry.execute_sync("kb__search", {}) == "bye"
    assert registry.execute_sync("fine__search", {}) == {"asked": {}}


def test_a_cancelled_error_raised_by_a_tool_does_not_cancel_the_caller(registry):
    async def execute(*_):
        raise asyncio.CancelledError

    registry.register(samples.Sample(execute=execute))

    with pytest.raises(RuntimeError, match="CancelledError"):
        asyncio.run(registry.execute("kb__search", {}))


def test_hanging_threads_use_up_only_their_own_plugins_limit(registry, fine, monkeypatch):
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


def test_a_blocking_call_from_the_plugins_loop_is_an_error(registry, fine):
    async def execute(*_):
        return registry.execute_sync("fine__search", {})

    async def call_another(*_):
        return await registry.execute("fine__search", {"from": "another"})

    registry.register(samples.Sample("sync", "sync", execute=execute))
    registry.register(samples.Sample("async", "async", execute=call_another))

    with pytest.raises(TypeError, match="use the async form"):
        registry.execute_sync("sync__search", {})
    assert registry.execute_sync("async__search", {}) == {"asked": {"from": "another"}}


def test_a_failure_is_logged_with_its_traceback_but_without_variable_values(registry, caplog):
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
