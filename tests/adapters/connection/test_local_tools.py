"""Tests of the program's own tools: declared, admitted and reported; an outage never loosens a denial.

Every test runs from an event loop and from a thread that may block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters.connection.in_memory import KEY, AsyncToolbelt, Toolbelt
from toolbelt.adapters.connection import local_tools, protocol
from toolbelt.core import errors

RUN = protocol.Run(session="s1", request_id="r1")
OTHER = protocol.Run(session="s2", request_id="r2")
REFUND = local_tools.LocalTool(name="refund", description="Refund an order.")
UNREACHABLE = protocol.Unreachable("Toolbelt could not be reached.")
DENIED = {"is_error": True, "code": "tool-denied", "message": "An operator has denied it."}


class Program:
    """A program with one tool."""

    def __init__(self, toolbelt: Toolbelt, **more: Any) -> None:
        self.toolbelt = toolbelt
        connection: Any = toolbelt
        self.local = local_tools.LocalTools(connection, [REFUND], plugin="shop", **more)

    def surface(self, run: protocol.Run = RUN, message: str | None = None) -> Any:
        if isinstance(self.toolbelt, AsyncToolbelt):
            return asyncio.run(self.local.surface(run, message=message))
        return self.local.blocking_surface(run, message=message)

    def find(self, key: str) -> local_tools.LocalTool | None:
        if isinstance(self.toolbelt, AsyncToolbelt):
            return asyncio.run(self.local.find(key))
        return self.local.blocking_find(key)

    def call(self, work: Callable[[local_tools.Admitted], Any], run: protocol.Run = RUN) -> Any:
        if not isinstance(self.toolbelt, AsyncToolbelt):
            with self.local.admitted(run, KEY, {}) as call:
                return work(call)

        async def later() -> Any:
            async with self.local.admitted(run, KEY, {}) as call:
                return work(call)

        return asyncio.run(later())

    def waiting(self) -> Any:
        if isinstance(self.toolbelt, AsyncToolbelt):
            return asyncio.run(self.local.waiting(RUN, KEY, {"order": 7}))
        return self.local.blocking_waiting(RUN, KEY, {"order": 7})

    def refusal(self, run: protocol.Run = RUN) -> Any:
        with pytest.raises(local_tools.NotAdmittedError) as raised:
            self.call(lambda call: pytest.fail("A refused call ran."), run)
        return raised.value.document["code"]


Start = Callable[..., Program]


@pytest.fixture(params=[Toolbelt, AsyncToolbelt])
def start(request: pytest.FixtureRequest) -> Start:
    return lambda **more: Program(request.param(), **more)


def ok(call: local_tools.Admitted) -> str:
    return str(call.result("refunded"))


def test_tools_are_declared_once_and_found_by_key(start: Start) -> None:
    program = start()
    program.surface()
    program.surface()
    assert program.toolbelt.requests == [
        ("declare", "shop", ["refund"]),
        ("surface", "s1"),
        ("surface", "s1"),
    ]
    assert program.find(KEY) is REFUND
    assert program.find("clock") is None


def test_a_tool_is_found_by_key_before_the_first_surface_request(start: Start) -> None:
    assert start().find(KEY) is REFUND


def test_without_local_tools_no_declaration_is_sent_and_outages_raise() -> None:
    connection: Any = Toolbelt()
    local = local_tools.LocalTools(connection)
    local.blocking_surface(RUN)
    connection.error = UNREACHABLE
    with pytest.raises(protocol.Unreachable):
        local.blocking_surface(RUN)
    assert connection.requests == [("surface", "s1")] * 2


def test_a_missing_plugin_or_invalid_offline_setting_is_an_error_at_startup() -> None:
    connection: Any = Toolbelt()
    with pytest.raises(ValueError, match="plugin="):
        local_tools.LocalTools(connection, [REFUND])
    offline: Any = "always"
    with pytest.raises(ValueError, match="refuse"):
        local_tools.LocalTools(connection, [REFUND], plugin="shop", offline=offline)


def test_an_admitted_call_runs_with_its_options_and_reports_its_result_size(start: Start) -> None:
    program = start()
    program.surface()
    options: list[Any] = []

    def work(call: local_tools.Admitted) -> Any:
        options.append(local_tools.options())
        return call.result({"sum": 5})

    assert program.call(work) == {"sum": 5}
    assert options == [{"limit": 50}]
    assert local_tools.options() is None
    assert program.toolbelt.requests_named("admit", "report") == [
        ("admit", KEY),
        ("report", "c1", "ok", "", 10),
    ]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ValueError("no such order"), "tool-failed"),
        (TimeoutError(), "timed-out"),
        (asyncio.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
    ],
)
def test_an_exception_is_reported_by_type_and_reraised(error: BaseException, outcome: str) -> None:
    def fail(call: local_tools.Admitted) -> None:
        raise error

    program = Program(Toolbelt())
    program.surface()
    with pytest.raises(type(error)):
        program.call(fail)
    [(_, _, reported, message, _)] = program.toolbelt.requests_named("report")
    assert (reported, message) == (outcome, f"{type(error).__name__}: {error}".removesuffix(": "))


def test_a_call_that_pauses_the_run_is_no_failure(start: Start) -> None:
    class ApprovalRequired(Exception):
        pass

    def pause(call: local_tools.Admitted) -> None:
        raise ApprovalRequired

    program = start(pauses=(ApprovalRequired,))
    program.surface()
    with pytest.raises(ApprovalRequired):
        program.call(pause)
    assert program.toolbelt.requests_named("report") == [("report", "c1", "cancelled", "ApprovalRequired", 0)]


def test_a_cancelled_task_is_reported() -> None:
    program, running = Program(AsyncToolbelt()), asyncio.Event()

    async def work() -> None:
        await program.local.surface(RUN)
        async with program.local.admitted(RUN, KEY, {}):
            running.set()
            await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.ensure_future(work())
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        [(_, _, reported, *_)] = program.toolbelt.requests_named("report")
        assert reported == "cancelled"

    asyncio.run(cancel())


def test_a_tool_can_report_a_failure_without_an_exception(start: Start) -> None:
    program = start()
    program.surface()
    program.call(lambda call: call.failed("It is closed."))
    assert program.toolbelt.requests_named("report") == [("report", "c1", "tool-failed", "It is closed.", 0)]


def test_a_refused_call_does_not_run_and_is_not_reported(start: Start) -> None:
    program = start()
    program.surface()
    program.toolbelt.admission = DENIED
    assert program.refusal() == "tool-denied"
    assert program.toolbelt.requests_named("report") == []


def test_a_rate_limited_admission_counts_as_a_refusal(start: Start) -> None:
    program = start(offline="allow")
    program.surface()
    program.toolbelt.error = protocol.TooMany("Too many requests.", 7)
    assert program.refusal() == "too-many-requests"


def test_a_run_pauses_only_for_a_call_that_waits_and_only_if_the_program_wants_it(start: Start) -> None:
    approval = {"id": "7F3KQ2MW", "expires": "2026-01-02T12:00:00Z", "retry_after": 5}
    waits = {"would": "wait", "code": "approval-pending", "message": "Ask.", "approval": approval}
    told, pausing = start(), start(approvals="pause")
    told.toolbelt.checked = pausing.toolbelt.checked = waits
    assert told.waiting() is None
    assert told.toolbelt.requests_named("check") == []
    assert pausing.waiting() == {
        "toolbelt_approval": "7F3KQ2MW",
        "tool": KEY,
        "message": "Ask.",
        "expires": approval["expires"],
    }
    assert pausing.toolbelt.requests_named("check") == [("check", KEY, {"order": 7}, "", True)]
    for otherwise in ({"would": "run"}, {"would": "refuse", "code": "too-many-approvals", "message": "No."}):
        pausing.toolbelt.checked = otherwise
        assert pausing.waiting() is None
    # The call says why.
    pausing.toolbelt.error = UNREACHABLE
    assert pausing.waiting() is None


def test_the_last_surface_is_used_and_marked_stale_during_an_outage(start: Start) -> None:
    program = start()
    fresh = program.surface(message="Refund it.")
    assert fresh["directive"]
    program.toolbelt.error = UNREACHABLE
    stale = program.surface(message="And this one.")
    assert stale == {**fresh, "directive": None, "stale": True}
    with pytest.raises(protocol.Unreachable):
        program.surface(OTHER)


def test_the_last_surface_is_used_only_until_it_expires(start: Start) -> None:
    program = start(stale_seconds=0)
    program.surface()
    program.toolbelt.error = UNREACHABLE
    with pytest.raises(protocol.Unreachable):
        program.surface()


def test_an_unavailable_database_in_the_same_process_counts_as_an_outage(start: Start) -> None:
    program = start()
    program.surface()
    program.toolbelt.error = errors.Unavailable("database-unavailable", "The database is away.", 1)
    assert program.surface()["stale"] is True
    assert program.refusal() == "unreachable"


def test_calls_are_refused_during_an_outage(start: Start) -> None:
    program = start()
    program.surface()
    program.toolbelt.error = UNREACHABLE
    assert program.refusal() == "unreachable"


def test_calls_run_during_an_outage_if_allowed_and_are_recorded_later(start: Start) -> None:
    program = start(offline="allow")
    program.surface()
    program.call(ok)
    program.toolbelt.error = UNREACHABLE
    options: list[Any] = []
    program.call(lambda call: options.append(local_tools.options()))
    assert options == [{"limit": 50}]

    program.toolbelt.error = None
    program.toolbelt.requests.clear()
    program.surface()
    assert program.toolbelt.requests == [("surface", "s1"), ("record", KEY, "ok", True)]


def test_a_tool_missing_from_the_last_surface_is_refused_during_an_outage(start: Start) -> None:
    program = start(offline="allow")
    program.toolbelt.active = ["clock"]
    program.surface()
    program.toolbelt.error = UNREACHABLE
    assert program.refusal() == "unreachable"
    assert program.refusal(OTHER) == "unreachable"


def test_a_tool_refused_since_the_last_surface_is_refused_during_an_outage(start: Start) -> None:
    program = start(offline="allow")
    program.surface()
    program.surface(OTHER)
    program.toolbelt.admission = DENIED
    program.refusal()
    program.toolbelt.error = UNREACHABLE
    assert program.refusal() == "unreachable"
    assert program.refusal(OTHER) == "unreachable"


def test_invalid_arguments_do_not_count_as_a_denial_during_an_outage(start: Start) -> None:
    program = start(offline="allow")
    program.surface()
    program.toolbelt.admission = {**DENIED, "code": "invalid-arguments"}
    program.refusal()
    program.toolbelt.error = UNREACHABLE
    assert program.call(ok) == "refunded"


def test_no_call_is_allowed_during_an_outage_if_the_surface_allows_none(start: Start) -> None:
    program = start(offline="allow")
    program.toolbelt.active = []
    program.surface()
    program.toolbelt.error = UNREACHABLE
    assert program.refusal() == "unreachable"


def test_an_outcome_that_cannot_be_reported_is_reported_later(start: Start) -> None:
    program = start()
    program.surface()

    def work(call: local_tools.Admitted) -> Any:
        program.toolbelt.error = UNREACHABLE
        return call.result("refunded")

    assert program.call(work) == "refunded"
    program.toolbelt.error = None
    program.toolbelt.requests.clear()
    program.surface()
    assert program.toolbelt.requests_named("report") == [("report", "c1", "ok", "", 8)]


def test_a_rejected_outcome_is_logged_and_not_reported_again(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    program = start()
    program.surface()

    def work(call: local_tools.Admitted) -> Any:
        program.toolbelt.error = errors.NotFound("admitted call", "c1")
        return call.result("refunded")

    assert program.call(work) == "refunded"
    assert "was not recorded" in caplog.text
    program.toolbelt.error = None
    program.surface()
    assert len(program.toolbelt.requests_named("report")) == 1


def test_a_call_is_admitted_in_the_version_that_the_program_declared(start: Start) -> None:
    program = start()
    program.toolbelt.declared = {"versions": {"refund": "2:sha256:a"}}
    program.surface()
    program.call(ok)
    assert program.toolbelt.requests_named("admit") == [("admit", KEY, "2:sha256:a")]


def test_one_warning_names_what_waits_what_is_withdrawn_and_the_command(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    program = start()
    show = "toolbelt mcp review shop"
    program.toolbelt.declared = {"waiting": [KEY], "withdrawn": ["shop__void"], "show": show}
    program.surface()
    program.surface()
    [record] = caplog.records
    assert record.levelname == "WARNING"
    for part in (f"waiting for a review: {KEY}", "rejected or blocked: shop__void", show):
        assert part in record.getMessage()


def test_a_program_that_runs_for_long_declares_its_tools_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start()
    program.surface()
    monkeypatch.setattr(local_tools, "DECLARED_AGAIN", 0.0)
    program.surface()
    assert len(program.toolbelt.requests_named("declare")) == 2
    program.toolbelt.error = UNREACHABLE
    assert program.find(KEY) is REFUND
