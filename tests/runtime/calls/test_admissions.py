"""Tests that calls run by the agent's own program are admitted like any call and recorded as reported."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from typing import Any

import prometheus_client
import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from tests.runtime.conftest import OPERATOR, Install
from toolbelt import models, testing
from toolbelt.control.config import belts
from toolbelt.control.reports import usage
from toolbelt.core import admitting as gate
from toolbelt.core import errors
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions
from toolbelt.runtime.calls.incoming import Call, RequestKey
from toolbelt.runtime.records import record_writer
from toolbelt.store import call_records as records
from toolbelt.store import databases

BELT: dict[str, Any] = {
    "plugins": [{"name": "shop", "namespace": "shop"}],
    "tools": [
        {
            "key": "shop__refund",
            "plugin": "shop",
            "input_schema": {
                "type": "object",
                "properties": {"order": {"type": "integer"}},
                "required": ["order"],
            },
        },
        {"key": "shop__secret", "plugin": "shop"},
        {"key": "clock"},
    ],
    "toolkits": [{"key": "money", "members": [{"tool": "shop__refund", "options": {"limit": 50}}]}],
    "agents": [{"key": "ada", "tools": ["clock"], "tools_config": {"money": True}}, {"key": "bob"}],
}
ORDER = {"order": 7}


@pytest.fixture
def stored(db: None) -> None:
    belts.import_(OPERATOR, BELT)


def admit(tool: str = "shop__refund", arguments: Any = None, **about: Any) -> admissions.Answer:
    given = ORDER if arguments is None else arguments
    version = about.pop("version", "")
    sender = about.pop("sender", "program")
    call = Call(key=RequestKey("ada", **about), tool=tool, arguments=given, version=version)
    return admissions.admit(call, sender)


def admitted(**about: Any) -> admissions.Admission:
    answer = admit(**about)
    assert isinstance(answer, admissions.Admission), answer
    return answer


def refusal(tool: str = "shop__refund", arguments: Any = None) -> gate.Refusal:
    answer = admit(tool, arguments)
    assert isinstance(answer, gate.Refusal)
    return answer


def record() -> models.CallRecord:
    return models.CallRecord.objects.get()


def outcomes(**filters: Any) -> list[str]:
    return [call.outcome for call in usage.page(**filters).calls]


def test_an_admission_returns_the_tool_s_options_and_creates_a_record(stored: None) -> None:
    assert admitted(session="s1", request_id="r1").options == {"limit": 50}
    row = record()
    assert (row.agent, row.session, row.request_id, row.tool, row.plugin, row.outcome) == (
        "ada",
        "s1",
        "r1",
        "shop__refund",
        "shop",
        "admitted",
    )


def test_a_tool_without_a_plugin_is_run_by_the_client(stored: None) -> None:
    assert admitted(tool="clock", arguments={}).options is None


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("nothing", {}, "unknown-tool"),
        ("shop__secret", {}, "unknown-tool"),
        ("shop__refund", {"order": "x"}, "invalid-arguments"),
    ],
)
def test_an_admission_is_checked_like_a_call(stored: None, tool: str, arguments: Any, code: str) -> None:
    assert refusal(tool, arguments).code == code
    assert record().outcome == code


def test_a_switch_change_applies_to_the_next_admission(stored: None) -> None:
    admitted()
    with testing.switched("ada", "money", False):
        assert refusal().code == "tool-denied"


def test_a_tool_run_by_toolbelt_is_not_admitted(db: None, install: Install) -> None:
    install("Kb", config="api_key: sesame-2000", agents=[{"key": "ada", "tools": ["kb__search"]}])
    refused = refusal("kb__search", {"query": "x"})
    assert refused.code == "run-by-toolbelt"
    assert "call it" in refused.message


def test_a_meta_tool_is_not_admitted(stored: None) -> None:
    assert refusal("load_tools", {"toolkit": "money"}).code == "run-by-toolbelt"


def test_calling_a_tool_of_the_client_refers_to_admission(stored: None) -> None:
    answer = calls.run("ada", "shop__refund", ORDER)
    assert isinstance(answer, gate.Refusal)
    assert answer.code == "run-by-client"
    assert "/calls/admit" in answer.message
    assert record().outcome == "run-by-client"


def test_calling_a_client_tool_that_is_not_granted_returns_unknown_tool(stored: None) -> None:
    answer = calls.run("ada", "shop__secret", {})
    assert isinstance(answer, gate.Refusal)
    assert answer.code == "unknown-tool"


def test_a_report_completes_the_record(stored: None) -> None:
    call = admitted()
    admissions.report("ada", call.call_id, "ok", duration_ms=120, result_bytes=9)
    row = record()
    assert (row.outcome, row.duration_ms, row.result_bytes) == ("ok", 120, 9)


def test_a_report_without_a_duration_is_timed_from_the_admission(stored: None) -> None:
    call = admitted()
    models.CallRecord.objects.update(at=timezone.now() - dt.timedelta(seconds=5))
    admissions.report("ada", call.call_id, "tool-failed", error="no such order")
    assert record().duration_ms >= 5000
    assert record().error == "no such order"


def test_metrics_count_a_call_once_by_its_reported_outcome(stored: None) -> None:
    def value(name: str, **labels: str) -> float:
        return prometheus_client.REGISTRY.get_sample_value(name, labels) or 0.0

    def values() -> list[float]:
        outcomes = ("admitted", "ok", "timed-out")
        counts = [
            value("toolbelt_tool_calls_total", agent="ada", tool="shop__refund", outcome=each)
            for each in outcomes
        ]
        return [*counts, value("toolbelt_tool_call_seconds_sum", tool="shop__refund")]

    before = values()
    call_id = admitted().call_id
    assert values() == before
    admissions.report("ada", call_id, "timed-out", duration_ms=2000)
    with pytest.raises(errors.Refused):
        admissions.report("ada", call_id, "ok")
    assert [now - then for now, then in zip(values(), before, strict=True)] == pytest.approx([0, 0, 1, 2])


def test_a_second_report_is_refused_and_changes_nothing(stored: None) -> None:
    call = admitted()
    admissions.report("ada", call.call_id, "ok")
    with pytest.raises(errors.Refused, match="reported before"):
        admissions.report("ada", call.call_id, "tool-failed")
    assert record().outcome == "ok"


def test_a_call_can_be_reported_only_by_its_own_agent_and_sender_kind(stored: None) -> None:
    call = admitted(sender="agent")
    for agent, sender in (("bob", "agent"), ("ada", "operator"), ("ada", "program")):
        with pytest.raises(errors.NotFound):
            admissions.report(agent, call.call_id, "ok", sender=sender)  # type: ignore[arg-type]
    admissions.report("ada", call.call_id, "ok", sender="agent")


@pytest.mark.parametrize("forged", ["", "x", "0" * 64, "é" * 64])
def test_an_unknown_call_id_is_not_found(stored: None, forged: str) -> None:
    with pytest.raises(errors.NotFound):
        admissions.report("ada", forged, "ok")


def test_the_call_id_in_a_record_cannot_be_used_to_report(stored: None) -> None:
    admitted()
    with pytest.raises(errors.NotFound):
        admissions.report("ada", record().call_id or "", "ok")


@pytest.mark.django_db(transaction=True)
def test_a_report_writes_the_pending_record_of_its_process_immediately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    belts.import_(OPERATOR, BELT)
    writer = record_writer.Writer()
    for name in ("enqueue", "flush"):
        monkeypatch.setattr(record_writer, name, getattr(writer, name))
    # Records are collected until a flush.
    monkeypatch.setattr(record_writer, "DELAY", 60.0)
    monkeypatch.setattr(admissions, "RETRY_PAUSES", ())
    writer.start()
    try:
        admissions.report("ada", admitted().call_id, "ok")
        assert record().outcome == "ok"
    finally:
        writer.stop()


def test_a_report_retries_before_a_missing_record_is_not_found(
    stored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []
    monkeypatch.setattr(time, "sleep", paused.append)
    monkeypatch.setattr(record_writer, "enqueue", lambda record: True)
    call = admitted()
    with pytest.raises(errors.NotFound):
        admissions.report("ada", call.call_id, "ok")
    assert paused == list(admissions.RETRY_PAUSES)


def test_a_report_waits_for_a_record_written_by_another_process(
    stored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Any] = []

    def enqueue(record: Any) -> bool:
        waiting.append(record)
        return True

    monkeypatch.setattr(record_writer, "enqueue", enqueue)
    call = admitted()
    assert not models.CallRecord.objects.exists()
    monkeypatch.setattr(time, "sleep", lambda _: records.record_all([waiting.pop()]))
    admissions.report("ada", call.call_id, "ok")
    assert record().outcome == "ok"


@pytest.mark.parametrize(
    ("about", "path"), [({"session": "x\0"}, "session"), ({"request_id": "x\0"}, "request_id")]
)
def test_a_call_with_a_malformed_id_is_not_recorded(stored: None, about: Any, path: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        admissions.record(Call(key=RequestKey("ada", **about), tool="shop__refund", arguments=ORDER), "ok")
    assert [problem.path for problem in refused.value.problems] == [path]
    assert not models.CallRecord.objects.exists()


@pytest.mark.parametrize("agent", ["eve", "ada\0", "carl"])
def test_a_call_of_an_unknown_or_archived_agent_is_not_recorded(stored: None, agent: str) -> None:
    belts.import_(OPERATOR, {"agents": [{"key": "carl", "archived": True}]})
    with pytest.raises(errors.NotFound):
        admissions.record(Call(key=RequestKey(agent), tool="shop__refund", arguments=ORDER), "ok")
    assert not models.CallRecord.objects.exists()


def test_the_database_connection_is_released_if_a_call_is_not_recorded(
    stored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = []
    monkeypatch.setattr(databases, "release", lambda: released.append(True))
    with pytest.raises(errors.NotFound):
        admissions.record(Call(key=RequestKey("eve"), tool="shop__refund", arguments=ORDER), "ok")
    assert released == [True]


def test_an_admitted_call_becomes_unreported_after_its_deadline(stored: None) -> None:
    admitted()
    assert outcomes() == outcomes(outcome="admitted") == ["admitted"]
    models.CallRecord.objects.update(report_by=timezone.now() - dt.timedelta(seconds=1))
    assert outcomes() == outcomes(outcome="unreported") == ["unreported"]
    assert outcomes(outcome="admitted") == []


def test_a_late_report_is_recorded_even_if_the_tool_was_blocked(stored: None) -> None:
    call = admitted()
    models.Tool.objects.filter(key="shop__refund").update(blocked=True)
    models.CallRecord.objects.update(report_by=timezone.now() - dt.timedelta(seconds=1))
    admissions.report("ada", call.call_id, "ok")
    assert outcomes() == ["ok"]


def test_an_admission_counts_as_neither_failed_nor_refused(stored: None) -> None:
    admitted()
    (figures,) = usage.by_tool()
    assert (figures.calls, figures.refused, figures.failed) == (1, 0, 0)


def test_a_block_reports_its_call_automatically(stored: None) -> None:
    with calls.admitted("ada", "shop__refund", ORDER, session="s1") as call:
        assert call.options == {"limit": 50}
        assert call.result({"refunded": True}) == {"refunded": True}
    row = record()
    assert (row.outcome, row.session, row.result_bytes) == ("ok", "s1", 18)


@pytest.mark.parametrize(
    ("raised", "outcome", "error"),
    [
        (ValueError("no such order"), "tool-failed", "ValueError: no such order"),
        (TimeoutError(), "timed-out", "TimeoutError"),
        (KeyboardInterrupt(), "cancelled", "KeyboardInterrupt"),
    ],
)
def test_an_exception_in_a_block_determines_the_reported_outcome(
    stored: None, raised: BaseException, outcome: str, error: str
) -> None:
    with pytest.raises(type(raised)), calls.admitted("ada", "shop__refund", ORDER):
        raise raised
    assert (record().outcome, record().error) == (outcome, error)


def test_a_block_does_not_run_if_the_call_is_refused(stored: None) -> None:
    with pytest.raises(admissions.NotAdmittedError) as raised, calls.admitted("ada", "nothing", {}):
        raise AssertionError
    assert raised.value.refusal.code == "unknown-tool"
    assert record().outcome == "unknown-tool"


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_async_block_is_reported() -> None:
    belts.import_(OPERATOR, BELT)
    started = asyncio.Event()

    async def run() -> None:
        async with calls.admitted("ada", "shop__refund", ORDER):
            started.set()
            await asyncio.sleep(60)

    async def cancelled() -> None:
        task = asyncio.create_task(run())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async_to_sync(cancelled)()
    assert record().outcome == "cancelled"


def test_the_test_kit_declares_approved_tools_and_admits_their_calls(db: None) -> None:
    (key,) = testing.declared("shop", [{"name": "refund"}], namespace="shop")
    belts.import_(OPERATOR, {"agents": [{"key": "ada", "tools": [key]}]})
    with testing.admitted("ada", key, {}) as call:
        call.result("done")
    assert outcomes() == ["ok"]
