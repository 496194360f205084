"""The registry: what is registered is found, run and listed; lazily or at start, from threads and from loops."""

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


def test_tools_are_defined_in_the_order_of_plugins_and_then_their_own(registry):
    registry.register(samples.Sample("b", "b", [samples.definition("b__2"), samples.definition("b__1")]))
    registry.register(samples.Sample("a", "a", [samples.definition("a__1")]))

    assert [tool.name for tool in registry.to_tool_definitions()] == ["b__2", "b__1", "a__1"]


def test_a_tool_is_resolved_to_its_plugin_by_its_exact_name(registry):
    plugin = samples.Sample()
    registry.register(plugin)

    assert registry.resolve_tool("kb__search") is plugin
    assert registry.resolve_tool("KB__search") is None
    assert registry.resolve_tool("search") is None


def test_a_plugin_without_a_namespace_names_its_tools_plainly(registry):
    registry.register(samples.Sample("toolDiscovery", "", [samples.definition("capability_list")]))

    assert registry.execute_sync("capability_list", {"a": 1}) == {"asked": {"a": 1}}


def test_a_tool_that_nobody_has_is_not_found_and_the_nearest_is_named(registry):
    registry.register(samples.Sample())

    with pytest.raises(errors.NotFound, match="kb__search") as refused:
        registry.execute_sync("kb__serach", {})
    assert refused.value.nearest == ("kb__search",)


def test_what_is_listed_says_what_the_plugin_is_and_where_it_comes_from(registry):
    kit = contract.CodeToolkit()
    kit.key, kit.members = "kb_toolkit", ("kb__search",)
    registry.register(samples.Sample(toolkits=[kit]))

    [info] = registry.list_plugins()

    assert (info.name, info.namespace, info.state, info.error) == ("knowledge", "kb", "registered", "")
    assert info.source == "tests.plugins.samples:Sample"
    assert [tool.name for tool in info.tools] == ["kb__search"]
    assert info.toolkits == (kit,)


def test_what_a_plugin_offers_is_copied(registry):
    schema = {"type": "object", "properties": {}}
    tools = [samples.definition(input_schema=schema)]
    registry.register(samples.Sample(tools=tools))

    schema["properties"] = "broken"
    tools.clear()

    assert registry.to_tool_definitions()[0].input_schema == {"type": "object", "properties": {}}


def test_nothing_is_initialized_before_the_first_call(registry):
    first, second = samples.Sample("a", "a"), samples.Sample("b", "b")
    registry.register(first)
    registry.register(second)
    assert first.initialized == 0

    registry.execute_sync("a__search", {})
    registry.execute_sync("a__search", {})

    assert (first.initialized, second.initialized) == (1, 0)
    assert [info.state for info in registry.list_plugins()] == ["initialized", "registered"]


def test_all_are_initialized_at_start_where_that_is_wanted(registry):
    plugins = [samples.Sample("a", "a"), samples.Sample("b", "b")]
    for plugin in plugins:
        registry.register(plugin)

    asyncio.run(registry.initialize())

    assert [plugin.initialized for plugin in plugins] == [1, 1]


def test_first_calls_at_once_from_many_threads_initialize_once(registry):
    async def slowly(runtime):
        await asyncio.sleep(0.05)

    plugin = samples.Sample(initialize=slowly)
    registry.register(plugin)
    together = threading.Barrier(16)

    def ask(number):
        together.wait()
        return registry.execute_sync("kb__search", {"number": number})

    with futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))

    assert answers == [{"asked": {"number": number}} for number in range(16)]
    assert plugin.initialized == 1


def test_first_calls_at_once_on_one_loop_initialize_once(registry):
    plugin = samples.Sample()
    registry.register(plugin)

    async def ask() -> Any:
        return await asyncio.gather(*(registry.execute("kb__search", {"n": n}) for n in range(8)))

    assert len(asyncio.run(ask())) == 8
    assert plugin.initialized == 1


def test_a_caller_who_gives_up_does_not_stop_the_plugin_from_getting_ready(registry):
    async def slowly(runtime):
        await asyncio.sleep(0.2)

    registry.register(samples.Sample(initialize=slowly))

    with pytest.raises(registries.TimedOutError):
        registry.execute_sync("kb__search", {}, within=0.02)

    assert registry.execute_sync("kb__search", {}) == {"asked": {}}


def test_async_plugins_find_the_same_running_loop_whoever_calls(registry):
    loops = []

    async def note(*_):
        loops.append(asyncio.get_running_loop())
        assert loops[-1].is_running()

    registry.register(samples.Sample(initialize=note, execute=note))
    registry.execute_sync("kb__search", {})
    asyncio.run(registry.execute("kb__search", {}))
    asyncio.run(registry.execute("kb__search", {}))

    assert len(loops) == 4
    assert len(set(loops)) == 1


def test_what_an_async_plugin_made_at_its_beginning_serves_calls_from_anywhere(registry):
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


def test_plain_functions_run_in_threads_and_side_by_side(registry):
    both = threading.Barrier(2, timeout=5)
    plugin = samples.Sample(execute=lambda name, args: both.wait() >= 0)
    registry.register(plugin)

    async def ask() -> Any:
        return await asyncio.gather(*(registry.execute("kb__search", {}) for _ in range(2)))

    assert asyncio.run(ask()) == [True, True]
    assert threading.get_ident() not in plugin.threads
    assert len(plugin.threads) == 2


def test_a_call_is_known_to_the_plugin_while_it_is_under_way_and_only_then(registry):
    seen = []
    plugin = samples.Sample(
        initialize=lambda runtime: seen.append(runtime.call),
        execute=lambda name, args: seen.append(plugin.runtime.call),
    )
    registry.register(plugin)
    call = contract.CallContext(agent="ada", session="s1", request_id="r1", options={"root": "/data"})

    registry.execute_sync("kb__search", {}, call=call)
    registry.execute_sync("kb__search", {})

    assert seen == [None, call, None]


def test_calls_at_once_are_not_confused(registry):
    both = threading.Barrier(2, timeout=5)

    def execute(name, args):
        both.wait()
        return plugin.runtime.call.agent

    plugin = samples.Sample(execute=execute)
    registry.register(plugin)

    async def ask() -> Any:
        calls = [contract.CallContext(agent=agent) for agent in ("ada", "bob")]
        return await asyncio.gather(*(registry.execute("kb__search", {}, call=call) for call in calls))

    assert asyncio.run(ask()) == ["ada", "bob"]


def test_options_never_mix_into_the_arguments(registry):
    registry.register(samples.Sample())
    call = contract.CallContext(agent="ada", options={"limit": 3})

    assert registry.execute_sync("kb__search", {"query": "x"}, call=call) == {"asked": {"query": "x"}}


def test_config_reaches_the_plugin_through_the_runtime(registry):
    plugin = samples.Sample()
    registry.register(plugin, config={"url": "https://kb.example"})
    registry.initialize_sync()

    assert plugin.runtime.config == {"url": "https://kb.example"}


def test_a_runtime_is_made_for_each_plugin_by_its_namespace_or_else_its_name():
    made = []

    def runtime_for(home, config):
        made.append((home, config))
        return None

    registry = registries.ToolPluginRegistry(runtime_for=runtime_for)
    registry.register(samples.Sample("one", "ns"), config={"a": 1})
    registry.register(samples.Sample("two", ""))
    registry.initialize_sync()
    registry.shutdown_sync()

    assert sorted(made) == [("ns", {"a": 1}), ("two", {})]


def test_registering_from_many_threads_loses_nothing(registry):
    def add(number):
        registry.register(samples.Sample(f"p{number}", f"p{number}"))

    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))

    assert sorted(info.name for info in registry.list_plugins()) == sorted(f"p{n}" for n in range(40))
    assert all(registry.resolve_tool(f"p{n}__search") for n in range(40))


def test_of_many_who_want_one_namespace_at_once_one_gets_it(registry):
    def add(number):
        try:
            registry.register(samples.Sample(f"p{number}", "kb"))
        except errors.Invalid:
            return 0
        return 1

    with futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(16))) == 1
    assert len(registry.list_plugins()) == 1
