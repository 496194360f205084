"""Tests that every call is checked, returns a result that a model can read, and is recorded."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import structlog
from asgiref.sync import async_to_sync

from tests.runtime import sample_plugins
from tests.runtime.conftest import OPERATOR, Install
from toolbelt import models, testing
from toolbelt.control.config import belts
from toolbelt.control.servers import plugins as configured
from toolbelt.core import admitting as gate
from toolbelt.core import errors
from toolbelt.runtime import calls, plugins
from toolbelt.settings import logs

KB = [tool.name for tool in sample_plugins.Kb.tools]
ADA = {
    "key": "ada",
    "tools": [{"tool": "kb__who", "options": {"depth": 3}}, *(key for key in KB if key != "kb__who")],
}


@pytest.fixture
def kb(db: None, install: Install) -> None:
    install("Kb", config="api_key: sesame-2000", agents=[ADA])


def call(tool: str, arguments: Any = None, **about: Any) -> calls.Answer:
    return calls.run("ada", tool, {} if arguments is None else arguments, **about)


def refusal(tool: str, arguments: Any = None, **about: Any) -> gate.Refusal:
    answer = call(tool, arguments, **about)
    assert isinstance(answer, gate.Refusal)
    return answer


def content(answer: calls.Answer) -> Mapping[str, Any]:
    assert isinstance(answer, calls.Result), answer
    return answer.content


@contextlib.contextmanager
def logged(*, as_json: bool) -> Iterator[io.StringIO]:
    """Yield the stream of all log lines, formatted as configured."""
    before = structlog.get_config()
    configured = logs.configure(level="DEBUG", as_json=as_json)["formatters"]["entry"]
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(configured.pop("()")(**configured))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield written
    finally:
        root.removeHandler(handler)
        structlog.configure(**before)


def the_record() -> models.CallRecord:
    return models.CallRecord.objects.get()


def test_a_call_returns_the_tool_s_result_and_is_recorded(kb: None) -> None:
    answer = call("kb__search", {"query": "é"}, session="s", request_id="r1")

    assert answer == calls.Result(content={"results": ["é"]})
    assert answer.document() == {"is_error": False, "content": {"results": ["é"]}}
    record = the_record()
    assert (record.agent, record.session, record.request_id) == ("ada", "s", "r1")
    assert (record.tool, record.plugin, record.outcome, record.error) == ("kb__search", "kb", "ok", "")
    assert record.arguments_bytes == len('{"query": "é"}'.encode())
    assert record.result_bytes == len('{"results": ["é"]}'.encode())
    assert record.duration_ms < 60_000
    assert record.arguments is None


def test_a_result_that_is_not_a_mapping_is_wrapped(kb: None) -> None:
    assert content(call("kb__plain")) == {"result": ["one", 2]}


def test_a_plugin_sees_the_call_s_context_with_options_apart_from_arguments(kb: None) -> None:
    result = content(call("kb__who", {"a": 1}, session="s", request_id="r1"))

    assert result == {
        "agent": "ada",
        "session": "s",
        "request": "r1",
        "options": {"depth": 3},
        "active": {"kb": sorted(KB)},
        "args": {"a": 1},
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("kb__nothing", {}, "unknown-tool"),
        ("kb__search", {"query": 1}, "invalid-arguments"),
        ("kb__search", ["no mapping"], "invalid-arguments"),
        ("kb__fail", {}, "tool-failed"),
        ("kb__crash", {}, "tool-failed"),
        ("kb__odd", {}, "tool-failed"),
    ],
)
def test_a_refusal_is_returned_and_recorded(kb: None, tool: str, arguments: Any, code: str) -> None:
    answer = refusal(tool, arguments)

    assert answer.code == code
    assert answer.document()["is_error"] is True
    assert (the_record().tool, the_record().outcome) == (tool, code)
    assert the_record().error


def test_a_tool_error_is_shown_but_an_unexpected_exception_is_only_recorded(kb: None) -> None:
    assert refusal("kb__fail").message == "The index is being rebuilt: try again in an hour."

    assert "row 7" not in refusal("kb__crash").message
    assert "row 7" in models.CallRecord.objects.get(tool="kb__crash").error


def test_a_secret_in_a_tool_s_error_is_withheld(kb: None) -> None:
    assert refusal("kb__leak").message == "GET /?key=[withheld] gave 403"
    assert "sesame" not in the_record().error


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("tool", ["kb__tell", "kb__break", "kb__leak"])
def test_a_secret_that_a_tool_logs_or_raises_is_withheld_from_the_log(
    kb: None, tool: str, as_json: bool
) -> None:
    with logged(as_json=as_json) as written:
        call(tool)

    text = written.getvalue()
    assert "sesame" not in text
    assert ("[withheld]" in text) == (tool != "kb__leak")
    if as_json:
        assert all(isinstance(json.loads(line), dict) for line in text.splitlines())


def test_a_secret_in_a_tool_s_result_is_withheld(
    db: None, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_PLACE", "shelf-of-the-owl")
    install("Kb", config='api_key: sesame-2000, place: "${KB_PLACE}"', agents=[ADA])

    result = content(call("kb__tell"))

    assert result == {
        "[withheld]": [b"sesame-2000".hex(), {"said": "Bearer [withheld]"}],
        "config": "[withheld]",
    }
    assert the_record().result_bytes == len(json.dumps(result))


def test_a_plugin_cannot_read_secrets_of_another_namespace(kb: None) -> None:
    assert refusal("kb__wrong_secret").code == "tool-failed"
    assert "NamespaceRefused" in the_record().error


def test_a_tool_switched_off_during_a_request_is_refused(kb: None) -> None:
    about = {"session": "s", "request_id": "r1"}
    assert content(call("kb__search", {"query": "x"}, **about))

    with testing.overridden("ada", "kb__search", False):
        assert refusal("kb__search", {"query": "x"}, **about).code == "tool-denied"


def test_a_tool_of_a_disabled_plugin_is_unavailable(kb: None) -> None:
    configured.disable(OPERATOR, "kb")

    assert refusal("kb__search", {"query": "x"}).code == "tool-unavailable"

    configured.enable(OPERATOR, "kb", plugins.live())
    assert content(call("kb__search", {"query": "x"}))


def test_a_tool_without_a_loaded_plugin_is_unavailable(kb: None, settings: Any) -> None:
    settings.TOOLBELT_PLUGINS_FILE = ""

    assert refusal("kb__search", {"query": "x"}).code == "tool-unavailable"
    assert "no plugin" in the_record().error


def test_a_tool_that_exceeds_the_time_limit_is_cancelled(kb: None, settings: Any) -> None:
    # The first call loads the plugin, which could take all the time.
    assert content(call("kb__search", {"query": "x"}))
    settings.TOOLBELT_CALL_SECONDS = 0.5
    sample_plugins.CANCELLED.clear()

    answer = refusal("kb__hang")

    assert (answer.code, answer.message) == ("timed-out", "kb__hang did not answer within 0.5 s.")
    assert models.CallRecord.objects.get(tool="kb__hang").outcome == "timed-out"
    assert sample_plugins.CANCELLED.wait(5)


def test_a_result_over_the_size_limit_is_refused(kb: None, settings: Any) -> None:
    settings.TOOLBELT_CALL_RESULT_BYTES = 2000

    answer = refusal("kb__large")

    assert answer.code == "tool-failed"
    assert "2012 bytes" in answer.message


def test_a_meta_tool_call_is_checked_and_recorded(db: None, install: Install) -> None:
    install("Notes", agents=[{"key": "ada", "allowed_toolkits": ["desk"]}])

    result = content(call("load_tools", {"toolkit": "desk"}, session="s", request_id="r1"))

    assert result["status"] == "loaded"
    assert (the_record().tool, the_record().outcome) == ("load_tools", "ok")
    assert refusal("notes__read", session="s", request_id="r1").code == "tool-not-active"
    assert content(call("notes__read", session="s", request_id="r2")) == {}
    assert refusal("load_tools", {}).code == "invalid-arguments"


def test_arguments_are_recorded_only_if_configured_and_without_secrets(kb: None, settings: Any) -> None:
    settings.TOOLBELT_RECORD_ARGUMENTS = True
    refusal("kb__leak")
    models.CallRecord.objects.all().delete()

    call(
        "kb__search",
        {"query": "sesame-2000", "auth": {"apiKey": "k", "user_password": ["p"]}, "max_tokens": 3},
    )

    assert the_record().arguments == {
        "query": "[withheld]",
        "auth": {"apiKey": "[withheld]", "user_password": "[withheld]"},
        "max_tokens": 3,
    }


@pytest.fixture
def options(kb: None) -> Callable[[Any], None]:
    def set_options(written: Any) -> None:
        models.AgentTool.objects.filter(tool__key="kb__who").update(options=written)

    return set_options


def test_references_in_options_become_the_plugin_s_secrets_and_allowed_variables(
    options: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ["KB_*"]
    monkeypatch.setenv("TOOLBELT_SECRET_KB__WEATHER_KEY", "sesame-8000")
    monkeypatch.setenv("KB_REGION", "/north")
    options(
        {"auth": ["Bearer ${WEATHER_KEY}"], "region": "${KB_REGION}", "text": "$${KB_REGION} $HOME", "n": 3}
    )

    answer = content(call("kb__who"))

    # The plugin gets it, and what it returns of it is withheld.
    assert sample_plugins.seen_options == {
        "auth": ["Bearer sesame-8000"],
        "region": "/north",
        "text": "${KB_REGION} $HOME",
        "n": 3,
    }
    assert "sesame-8000" not in str(answer)


@pytest.mark.parametrize(
    "name", ["UNSET_VARIABLE", "HOME", "SECRET_KEY", "TOOLBELT_SECRET_OTHER__KEY", "DATABASE_URL"]
)
def test_an_option_cannot_use_any_other_variable(
    options: Callable[[Any], None], settings: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ["UNSET_VARIABLE", "SECRET_KEY", "DATABASE_URL", "TOOLBELT_*"]
    for variable in ("SECRET_KEY", "DATABASE_URL", "TOOLBELT_SECRET_OTHER__KEY"):
        monkeypatch.setenv(variable, "sesame-9000")
    options({"apiKey": f"${{{name}}}"})

    assert refusal("kb__who").code == "tool-unavailable"
    assert f"the variable {name}" in the_record().error
    assert "sesame-9000" not in the_record().error


def test_the_record_of_invalid_arguments_contains_paths_but_no_values(kb: None) -> None:
    answer = refusal("kb__search", {"query": ["hunter2"]})

    assert "hunter2" in answer.message
    assert "hunter2" in answer.document()["errors"][0]["message"]
    assert the_record().error == "The arguments do not fit: query: type"


def test_a_call_for_an_unknown_agent_raises_not_found_and_is_not_recorded(kb: None) -> None:
    with pytest.raises(errors.NotFound, match="Did you mean ada"):
        calls.run("adda", "kb__search", {"query": "x"})

    assert not models.CallRecord.objects.exists()


def test_an_invalid_tool_name_is_cleaned_and_recorded(kb: None) -> None:
    assert refusal("a\0b\ud800" + "c" * 500).code == "unknown-tool"

    assert len(the_record().tool) == 200


def test_a_plugin_that_fails_to_initialize_is_recorded_as_failed(db: None, install: Install) -> None:
    install("Kb", "Broken", agents=[{"key": "ada", "tools": ["broken__run", "kb__search"]}])

    assert refusal("broken__run").code == "tool-unavailable"

    row = models.Plugin.objects.get(name="broken")
    assert (row.status, row.error) == ("failed", "ConnectionError: the index is not there")
    entry = models.AuditEntry.objects.filter(subject_key="broken", via="system").get()
    assert (entry.actor, entry.actor_kind, entry.action) == ("broken", "program", "plugin.fail")
    assert content(call("kb__search", {"query": "x"}))


def test_an_async_call_returns_the_same_as_a_blocking_call(kb: None) -> None:
    assert content(async_to_sync(calls.arun)("ada", "kb__search", {"query": "x"})) == {"results": ["x"]}
    assert isinstance(async_to_sync(calls.arun)("ada", "kb__crash", {}), gate.Refusal)
    assert list(models.CallRecord.objects.order_by("id").values_list("outcome", flat=True)) == [
        "ok",
        "tool-failed",
    ]


def test_cancelling_a_call_cancels_the_tool(kb: None) -> None:
    sample_plugins.STARTED.clear()
    sample_plugins.CANCELLED.clear()

    async def give_up() -> None:
        task = asyncio.create_task(calls.arun("ada", "kb__hang", {}))
        await asyncio.to_thread(sample_plugins.STARTED.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async_to_sync(give_up)()

    assert sample_plugins.CANCELLED.wait(5)
    assert the_record().outcome == "cancelled"


def test_calls_of_one_plugin_wait_for_a_slot_within_their_time_limit(kb: None, settings: Any) -> None:
    settings.TOOLBELT_CALLS_PER_PLUGIN = 1

    async def together(*tools: str) -> list[calls.Answer]:
        return list(await asyncio.gather(*(calls.arun("ada", tool, {}) for tool in tools)))

    assert [content(answer) for answer in async_to_sync(together)(*["kb__take_long"] * 3)] == [{}] * 3

    settings.TOOLBELT_CALL_SECONDS = 0.3
    answers = async_to_sync(together)("kb__hang", "kb__plain")
    assert [answer.document().get("code") for answer in answers] == ["timed-out", "timed-out"]
    assert content(call("kb__plain"))


@pytest.mark.django_db
def test_one_agents_long_calls_do_not_delay_another_agents_call(install: Install, settings: Any) -> None:
    sample_plugins.reset()
    settings.TOOLBELT_CALLS_PER_PLUGIN = 4
    install("Kb", agents=[ADA, {**ADA, "key": "bob"}])

    async def together() -> tuple[int, calls.Answer]:
        of_ada = [asyncio.create_task(calls.arun("ada", "kb__hold", {})) for _ in range(6)]
        async with asyncio.timeout(20):
            while calls._slots.waiting("kb") < 4:  # noqa: ASYNC110 (the calls are admitted in threads)
                await asyncio.sleep(0.01)
            answer = await calls.arun("bob", "kb__plain", {})
        begun = len(sample_plugins.HOLDING)
        sample_plugins.RELEASED.set()
        await asyncio.gather(*of_ada)
        return begun, answer

    begun, answer = async_to_sync(together)()

    assert begun == 2
    assert isinstance(answer, calls.Result)


def test_an_agent_with_too_many_waiting_calls_is_refused_another(kb: None, settings: Any) -> None:
    sample_plugins.reset()
    settings.TOOLBELT_CALLS_PER_PLUGIN, settings.TOOLBELT_REQUESTS_AT_ONCE = 1, 8

    async def together() -> list[calls.Answer]:
        waiting = [asyncio.create_task(calls.arun("ada", "kb__hold", {})) for _ in range(3)]
        async with asyncio.timeout(20):
            while calls._slots.waiting("kb") < 2:  # noqa: ASYNC110 (the calls are admitted in threads)
                await asyncio.sleep(0.01)
            refused = await calls.arun("ada", "kb__plain", {})
        sample_plugins.RELEASED.set()
        return [refused, *await asyncio.gather(*waiting)]

    refused, *others = async_to_sync(together)()

    assert isinstance(refused, gate.Refusal)
    assert (refused.code, "Try again" in refused.message) == ("tool-unavailable", True)
    assert all(isinstance(answer, calls.Result) for answer in others)


@pytest.mark.django_db(transaction=True)
def test_plugin_state_survives_a_restart(install: Install) -> None:
    install("Kb", agents=[ADA])
    assert content(call("kb__count")) == {"seen": 1}

    plugins.stop()

    assert content(call("kb__count")) == {"seen": 2}
    assert models.PluginState.objects.get().natural_key() == ("kb", "seen")


def test_a_plugin_cannot_reach_private_addresses_unless_allowed(kb: None, settings: Any) -> None:
    for url in (
        "http://127.0.0.1:9/",
        "http://localhost:9/",
        "http://169.254.169.254/latest/",
        "http://[::1]:9/",
    ):
        assert refusal("kb__visit", {"url": url}).code == "tool-failed"
        record = models.CallRecord.objects.first()
        assert record is not None
        assert "AddressRefused" in record.error

    settings.TOOLBELT_ALLOW_PRIVATE_HTTP = True
    refusal("kb__visit", {"url": "http://127.0.0.1:9/"})
    record = models.CallRecord.objects.first()
    assert record is not None
    assert record.error.startswith("ConnectError")


def test_simultaneous_first_calls_load_the_plugins_once(kb: None) -> None:
    plugins.stop()
    registries: list[Any] = []
    threads = [threading.Thread(target=lambda: registries.append(plugins.registry())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({id(registry) for registry in registries}) == 1


@pytest.fixture
def disguised(kb: None, settings: Any) -> None:
    settings.TOOLBELT_HIDE_DENIED = True
    belts.import_(
        OPERATOR,
        {"tools": [{"key": "idle"}], "agents": [{**ADA, "tools_config": {"kb__plain": False}}]},
    )


@pytest.mark.parametrize(
    ("tool", "reason", "because"),
    [
        ("idle", "not-granted", "nothing grants it"),
        ("kb__plain", "override-off", "its override is off"),
        ("no_such_tool", "", "There is no tool named"),
    ],
)
def test_the_true_reason_of_a_refusal_is_recorded_but_hidden_from_the_agent(
    disguised: None, tool: str, reason: str, because: str
) -> None:
    assert refusal(tool).document() == {
        "is_error": True,
        "code": "unknown-tool",
        "message": f"There is no tool named {tool!r}.",
    }
    record = the_record()
    assert (record.outcome, record.reason) == ("unknown-tool", reason)
    assert because in record.error
    assert record.revision == belts.revision()
