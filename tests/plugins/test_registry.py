"""Tests of the registry: plugins are registered, listed, initialized once, and called from threads and event loops."""

from __future__ import annotations

import asyncio
import threading
from concurrent import futures
from typing import Any

import pytest

from tests.plugins import samples
from toolbelt.core import errors
from toolbelt.plugins import contract
from toolbelt.plugins import registry as registries


def test_tool_definitions_keep_the_order_of_plugins_and_of_their_tools(registry):
    registry.register(samples.Sample("b", "b", [samples.definition("b__2"), samples.definition("b__1")]))
    registry.register(samples.Sample("a", "a", [samples.definition("a__1")]))

    assert [tool.name for tool in registry.to_tool_definitions()] == ["b__2", "b__1", "a__1"]


def test_a_tool_is_resolved_to_its_plugin_by_its_exact_name(registry):
    plugin = samples.Sample()
    registry.register(plugin)

    assert registry.resolve_tool("kb__search") is plugin
    assert registry.resolve_tool("KB__search") is None
    assert registry.resolve_tool("search") is None


def test_tools_of_a_plugin_without_a_namespace_have_no_prefix(registry):
    registry.register(samples.Sample("toolDiscovery", "", [samples.definition("capability_list")]))

    assert registry.execute_sync("capability_list", {"a": 1}) == {"asked": {"a": 1}}


def test_an_unknown_tool_is_not_found_and_the_nearest_name_is_suggested(registry):
    registry.register(samples.Sample())

    with pytest.raises(errors.NotFound, match="kb__search") as raised:
        registry.execute_sync("kb__serach", {})
    assert raised.value.nearest == ("kb__search",)


def test_listed_plugins_have_their_state_source_tools_and_toolkits(registry):
    kit = contract.CodeToolkit()
    kit.key, kit.members = "kb_toolkit", ("kb__search",)
    registry.register(samples.Sample(toolkits=[kit]))

    [info] = registry.list_plugins()

    assert (info.name, info.namespace, info.state, info.error) == ("knowledge", "kb", "registered", "")
    assert info.source == "tests.plugins.samples:Sample"
    assert [tool.name for tool in info.tools] == ["kb__search"]
    assert info.toolkits == (kit,)


def test_tool_definitions_are_copied_at_registration(registry):
    schema = {"type": "object", "properties": {}}
    tools = [samples.definition(input_schema=schema)]
    registry.register(samples.Sample(tools=tools))

    schema["properties"] = "broken"
    tools.clear()

    assert registry.to_tool_definitions()[0].input_schema == {"type": "object", "properties": {}}


def test_a_plugin_is_initialized_by_its_first_call_only(registry):
    first, second = samples.Sample("a", "a"), samples.Sample("b", "b")
    registry.register(first)
    registry.register(second)
    assert first.initialized == 0

    registry.execute_sync("a__search", {})
    registry.execute_sync("a__search", {})

    assert (first.initialized, second.initialized) == (1, 0)
    assert [info.state for info in registry.list_plugins()] == ["initialized", "registered"]


def test_initialize_initializes_all_plugins(registry):
    plugins = [samples.Sample("a", "a"), samples.Sample("b", "b")]
    for plugin in plugins:
        registry.register(plugin)

    asyncio.run(registry.initialize())

    assert [plugin.initialized for plugin in plugins] == [1, 1]


def test_concurrent_first_calls_from_many_threads_initialize_once(registry):
    async def slowly(runtime):
        await asyncio.sleep(0.05)

    plugin = samples.Sample(initialize=slowly)
    registry.register(plugin)
    barrier = threading.Barrier(16)

    def call(number):
        barrier.wait()
        return registry.execute_sync("kb__search", {"number": number})

    with futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(call, range(16)))

    assert answers == [{"asked": {"number": number}} for number in range(16)]
    assert plugin.initialized == 1


def test_concurrent_first_calls_on_one_loop_initialize_once(registry):
    plugin = samples.Sample()
    registry.register(plugin)

    async def call_concurrently() -> Any:
        return await asyncio.gather(*(registry.execute("kb__search", {"n": n}) for n in range(8)))

    assert len(asyncio.run(call_concurrently())) == 8
    assert plugin.initialized == 1


def test_a_caller_that_times_out_does_not_stop_the_initialization(registry):
    async def slowly(runtime):
        await asyncio.sleep(0.2)

    registry.register(samples.Sample(initialize=slowly))

    with pytest.raises(registries.TimedOutError):
        registry.execute_sync("kb__search", {}, within=0.02)

    assert registry.execute_sync("kb__search", {}) == {"asked": {}}


def test_async_plugins_always_run_on_the_same_loop(registry):
    loops = []

    async def record_loop(*_):
        loops.append(asyncio.get_running_loop())
        assert loops[-1].is_running()

    registry.register(samples.Sample(initialize=record_loop, execute=record_loop))
    registry.execute_sync("kb__search", {})
    asyncio.run(registry.execute("kb__search", {}))
    asyncio.run(registry.execute("kb__search", {}))

    assert len(loops) == 4
    assert len(set(loops)) == 1


def test_tasks_created_in_initialize_serve_calls_from_threads_and_loops(registry):
    class Queued(samples.Sample):
        async def initialize(self, runtime):
            self.queue: asyncio.Queue[Any] = asyncio.Queue()
            self.worker = asyncio.get_running_loop().create_task(self.work())

        async def work(self) -> None:
            while True:
                number, answer = await self.queue.get()
                answer.set_result(number * 2)

        async def execute(self, tool_name, args):
            answer = asyncio.get_running_loop().create_future()
            await self.queue.put((args["number"], answer))
            return await answer

    registry.register(Queued())

    assert registry.execute_sync("kb__search", {"number": 4}) == 8
    assert asyncio.run(registry.execute("kb__search", {"number": 5})) == 10


def test_plain_functions_run_concurrently_in_threads(registry):
    barrier = threading.Barrier(2, timeout=5)
    plugin = samples.Sample(execute=lambda name, args: barrier.wait() >= 0)
    registry.register(plugin)

    async def call_concurrently() -> Any:
        return await asyncio.gather(*(registry.execute("kb__search", {}) for _ in range(2)))

    assert asyncio.run(call_concurrently()) == [True, True]
    assert threading.get_ident() not in plugin.threads
    assert len(plugin.threads) == 2


def test_the_call_context_is_set_only_during_the_call(registry):
    contexts = []
    plugin = samples.Sample(
        initialize=lambda runtime: contexts.append(runtime.call),
        execute=lambda name, args: contexts.append(plugin.runtime.call),
    )
    registry.register(plugin)
    call = contract.CallContext(agent="ada", session="s1", request_id="r1", options={"root": "/data"})

    registry.execute_sync("kb__search", {}, call=call)
    registry.execute_sync("kb__search", {})

    assert contexts == [None, call, None]


def test_concurrent_calls_have_their_own_contexts(registry):
    barrier = threading.Barrier(2, timeout=5)

    def execute(name, args):
        barrier.wait()
        return plugin.runtime.call.agent

    plugin = samples.Sample(execute=execute)
    registry.register(plugin)

    async def call_concurrently() -> Any:
        calls = [contract.CallContext(agent=agent) for agent in ("ada", "bob")]
        return await asyncio.gather(*(registry.execute("kb__search", {}, call=call) for call in calls))

    assert asyncio.run(call_concurrently()) == ["ada", "bob"]


def test_options_are_not_mixed_into_the_arguments(registry):
    registry.register(samples.Sample())
    call = contract.CallContext(agent="ada", options={"limit": 3})

    assert registry.execute_sync("kb__search", {"query": "x"}, call=call) == {"asked": {"query": "x"}}


def test_the_config_is_available_through_the_runtime(registry):
    plugin = samples.Sample()
    registry.register(plugin, config={"url": "https://kb.example"})
    registry.initialize_sync()

    assert plugin.runtime.config == {"url": "https://kb.example"}


def test_each_plugin_has_its_own_runtime_named_after_its_namespace_or_name():
    created = []

    def runtime_for(name, config):
        created.append((name, config))
        return None

    registry = registries.ToolPluginRegistry(runtime_for=runtime_for)
    registry.register(samples.Sample("one", "ns"), config={"a": 1})
    registry.register(samples.Sample("two", ""))
    registry.initialize_sync()
    registry.shutdown_sync()

    assert sorted(created) == [("ns", {"a": 1}), ("two", {})]


def test_concurrent_registrations_are_all_kept(registry):
    def add(number):
        registry.register(samples.Sample(f"p{number}", f"p{number}"))

    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))

    assert sorted(info.name for info in registry.list_plugins()) == sorted(f"p{n}" for n in range(40))
    assert all(registry.resolve_tool(f"p{n}__search") for n in range(40))


def test_only_one_of_many_concurrent_registrations_gets_a_namespace(registry):
    def add(number):
        try:
            registry.register(samples.Sample(f"p{number}", "kb"))
        except errors.Invalid:
            return 0
        return 1

    with futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(16))) == 1
    assert len(registry.list_plugins()) == 1


class Late(samples.Sample):
    """A plugin that knows its tools only after its initialization, as one that asks a server for them."""

    async def initialize(self, runtime: contract.RuntimeAPI) -> None:
        self.tools = [samples.definition("kb__search", description="Now."), samples.definition("kb__late")]


def test_tools_that_a_plugin_has_only_after_its_initialization_are_a_problem(registry, caplog):
    registry.register(
        Late("knowledge", "kb", [samples.definition("kb__search"), samples.definition("kb__old")])
    )

    registry.initialize_sync()

    [info] = registry.list_plugins()
    [problem] = info.problems
    assert [tool.name for tool in info.tools] == ["kb__search", "kb__old"]
    assert problem.path == "knowledge.tools"
    assert "(new: kb__late; missing: kb__old; changed: kb__search)" in problem.message
    assert "kb__late" in caplog.text


def test_reading_again_what_a_plugin_offers_settles_that(registry):
    registry.register(Late("knowledge", "kb", []))
    registry.initialize_sync()

    registry.refresh("knowledge")

    [info] = registry.list_plugins()
    assert ([tool.name for tool in info.tools], info.problems) == (["kb__search", "kb__late"], ())


def test_a_plugin_that_offers_the_same_after_its_initialization_has_no_problem(registry):
    registry.register(samples.Sample())
    registry.initialize_sync()
    assert registry.list_plugins()[0].problems == ()
