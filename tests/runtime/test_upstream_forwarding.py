"""Tests that all calls of a session reach the process that holds its connection, whichever process is asked."""

from __future__ import annotations

import datetime as dt
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import keeping, listing, scripting
from tests.runtime import connected, working
from tests.runtime.connected import stopped as stopped
from toolbelt import models
from toolbelt.control.agents import sessions
from toolbelt.control.catalog import entries
from toolbelt.plugins.upstream import relay, requests
from toolbelt.runtime import plugins, upstream_forwarding
from toolbelt.store import clock

# Other processes see what is written.
pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = ("put", "get", "who", "hang", "progress", "fail", "die", "result")


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    """Add a server that keeps a text for each connection, and give its tools to ada."""
    script = scripting.Script(tmp_path)
    text = {"text": {"type": "string"}}
    script.lists(*(listing.tool(name, f"Does {name}.", text if name == "put" else None) for name in TOOLS))
    connected.add("files", {**script.connection, "timeout": 300})
    assert connected.refresh("files")["files"].error == ""
    connected.give(*(f"files__{tool}" for tool in TOOLS))
    # Its connection is of no use to the processes that are asked.
    plugins.stop()
    return script


@pytest.fixture
def sockets(tmp_path: Path) -> Path:
    return tmp_path / "sockets"


@pytest.fixture
def two(script: scripting.Script, sockets: Path) -> Iterator[list[working.Worker]]:
    with working.workers(2, TOOLBELT_SOCKET_DIR=str(sockets)) as workers:
        yield workers


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if is_so():
            return
        time.sleep(0.03)
    raise AssertionError("it did not come about")


def refused(worker: working.Worker, session: str, tool: str) -> tuple[str, str]:
    answer = worker.call(session, tool).result(60)["answer"]
    assert "code" in answer, answer
    return answer["code"], answer["message"]


def test_a_session_finds_its_state_whichever_process_is_asked(two: list[working.Worker]) -> None:
    one, other = two
    assert one.said("s1", "files__put", text="of s1") == "kept"
    assert other.said("s2", "files__put", text="of s2") == "kept"

    assert [worker.said("s1", "files__get") for worker in two] == ["of s1"] * 2
    assert [worker.said("s2", "files__get") for worker in two] == ["of s2"] * 2
    assert one.said("s1", "files__who") == other.said("s1", "files__who")


def test_a_hundred_sessions_that_call_two_processes_in_turns_find_their_own_state(
    script: scripting.Script, sockets: Path, tmp_path: Path
) -> None:
    connection = {**script.connection, "max_connections": 100}
    entries.change(connected.OPERATOR, "plugin", "files", {"upstream": connection})
    sessions = [f"s{number}" for number in range(100)]
    with working.workers(2, TOOLBELT_SOCKET_DIR=str(sockets)) as workers:

        def in_turns(step: int, tool: str) -> list[str]:
            found = []
            # A few at a time, so that calls of many sessions meet in both processes.
            for first in range(0, 100, 10):
                asked = [
                    workers[(number + step) % 2].call(
                        sessions[number], tool, **({"text": sessions[number]} if tool == "files__put" else {})
                    )
                    for number in range(first, first + 10)
                ]
                found += [one.result(60)["answer"]["content"]["result"] for one in asked]
            return found

        assert in_turns(0, "files__put") == ["kept"] * 100
        assert in_turns(1, "files__get") == sessions
        assert in_turns(0, "files__get") == sessions
        assert in_turns(0, "files__who") == in_turns(1, "files__who")
        assert len(set(in_turns(0, "files__who"))) == 100
        assert [worker.end() for worker in workers] == [0, 0]

    assert keeping.processes(tmp_path) == set()
    assert [*sockets.iterdir()] == []
    assert not models.UpstreamConnection.objects.exists()


def test_calls_of_a_new_session_at_once_make_one_connection(
    two: list[working.Worker], script: scripting.Script
) -> None:
    script.delay(0.5)
    asked = [worker.call("s1", "files__who") for _ in range(5) for worker in two]

    assert len({one.result(60)["answer"]["content"]["result"] for one in asked}) == 1


def test_where_a_process_was_killed_the_session_begins_anew_in_another(
    two: list[working.Worker], tmp_path: Path, sockets: Path
) -> None:
    one, other = two
    one.said("s1", "files__put", text="mine")
    assert other.said("s1", "files__get") == "mine"
    (left,) = [int(str(one.said("s1", "files__who")).removeprefix("process "))]

    one.kill()

    assert other.said("s1", "files__get") == "nothing"
    until(lambda: left not in keeping.processes(tmp_path))
    assert len([*sockets.iterdir()]) == 1


def test_a_call_whose_process_is_killed_meanwhile_says_so(
    two: list[working.Worker], script: scripting.Script
) -> None:
    one, other = two
    one.said("s1", "files__get")
    hanging = other.call("s1", "files__hang")
    until(script.has_begun_to_hang)

    one.kill()

    assert hanging.result(60)["answer"]["code"] == "tool-unavailable"
    record = models.CallRecord.objects.get(outcome="tool-unavailable")
    assert record.error == "The process that held the connection ended before the tool answered."
    assert other.said("s1", "files__get") == "nothing"


def test_progress_and_errors_come_from_another_process_as_from_this_one(two: list[working.Worker]) -> None:
    one, other = two
    one.said("s1", "files__get")

    assert other.call("s1", "files__progress").result(60)["steps"] == ["step 1", "step 2"]
    assert refused(other, "s1", "files__fail") == ("tool-failed", "There is no such file.")
    assert refused(other, "s1", "files__die")[0] == "tool-unavailable"
    # The server was started again, by the process that held it.
    assert other.said("s1", "files__who") == one.said("s1", "files__who")


def test_a_server_that_may_not_ask_the_user_asks_nobody_through_another_process(
    two: list[working.Worker], script: scripting.Script
) -> None:
    question = {"message": "Your password?", "requestedSchema": {"type": "object", "properties": {}}}
    request = {"method": "elicitation/create", "params": question}
    script.results_in({"resultType": "input_required", "content": [], "inputRequests": {"q": request}})
    # It speaks the revision of MCP that has such results.
    script.offers({"server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}})
    one, other = two

    said = refused(one, "s1", "files__result")
    assert said == ("tool-failed", "The server asks for input that is not available here.")
    assert refused(other, "s1", "files__result") == said


def test_a_call_that_is_denied_before_the_other_process_writes_it_does_not_run(
    two: list[working.Worker], script: scripting.Script
) -> None:
    one, other = two
    one.said("s1", "files__put", text="mine")
    # The server of the connection is gone: the process that holds it has to wait until it is there again.
    one.call("s1", "files__die").result(60)
    calls = script.calls
    script.delay(3)
    starts = script.starts
    waiting = other.call("s1", "files__get")
    until(lambda: script.starts > starts)

    # No emergency stop, which would end the call in its own way.
    connected.give("files__who")

    assert waiting.result(60)["answer"]["code"] == "unknown-tool"
    assert other.said("s1", "files__who")
    assert script.calls == calls + 1


def test_a_call_that_is_cancelled_is_taken_back_at_the_server(
    two: list[working.Worker], script: scripting.Script
) -> None:
    one, other = two
    one.said("s1", "files__get")
    other.call("s1", "files__hang")
    until(script.has_begun_to_hang)

    other.cancel("s1")

    until(script.has_heard_of_a_cancellation)
    assert other.said("s1", "files__get") == "nothing"


def test_a_connection_that_its_process_has_closed_is_made_by_whoever_is_asked(
    script: scripting.Script, sockets: Path, tmp_path: Path
) -> None:
    connection = {**script.connection, "idle": 1}
    entries.change(connected.OPERATOR, "plugin", "files", {"upstream": connection})
    with working.workers(2, TOOLBELT_SOCKET_DIR=str(sockets)) as (one, other):
        one.said("s1", "files__put", text="mine")
        assert other.said("s1", "files__get") == "mine"
        until(lambda: not keeping.processes(tmp_path))

        assert other.said("s1", "files__get") == "nothing"


def test_a_session_that_is_evicted_begins_anew_whichever_process_had_its_connection(
    two: list[working.Worker], sockets: Path, settings: Any
) -> None:
    settings.TOOLBELT_SOCKET_DIR = str(sockets)
    one, other = two
    assert one.said("s1", "files__put", text="of s1") == "kept"
    assert other.said("s1", "files__get") == "of s1"

    sessions.evict(connected.OPERATOR, "ada", "s1")

    assert [worker.said("s1", "files__get") for worker in two] == ["nothing"] * 2


def test_a_connection_of_another_host_is_not_made_twice(two: list[working.Worker]) -> None:
    one, other = two
    one.said("s1", "files__get")
    models.UpstreamConnection.objects.update(host="elsewhere/0", address="/nowhere")

    assert refused(other, "s1", "files__get")[0] == "tool-unavailable"
    record = models.CallRecord.objects.get(outcome="tool-unavailable")
    assert record.error == (
        "This session's connection to files is held by another host (elsewhere): route each session to one host"
        " (sticky sessions)."
    )


def test_a_connection_that_another_host_left_behind_is_made_anew(two: list[working.Worker]) -> None:
    one, other = two
    one.said("s1", "files__get")
    models.UpstreamConnection.objects.update(host="elsewhere/0", address="/nowhere", expires=clock.now())

    assert other.said("s1", "files__get") == "nothing"


def test_a_connection_whose_process_hangs_is_made_anew_once_its_claim_has_expired(
    script: scripting.Script, sockets: Path
) -> None:
    def said(worker: working.Worker, tool: str, **arguments: str) -> str:
        answer = worker.call("s1", tool, **arguments).result(60)["answer"]
        return str(answer["content"]["result"]) if not answer["is_error"] else str(answer["code"])

    settings = {"TOOLBELT_SOCKET_DIR": str(sockets), "TOOLBELT_CALL_SECONDS": 6.0}
    with working.workers(2, **settings) as (one, other):
        # A loaded machine may take longer to start the server than a call may take.
        until(lambda: said(one, "files__put", text="mine") == "kept")
        until(lambda: said(other, "files__get") == "mine")
        os.kill(one.pid, signal.SIGSTOP)
        assert refused(other, "s1", "files__get")[0] == "timed-out"

        models.UpstreamConnection.objects.update(expires=clock.now() - dt.timedelta(seconds=1))

        # A loaded machine may take longer to start the server than this call may take.
        until(
            lambda: (
                other.call("s1", "files__get").result(60)["answer"].get("content") == {"result": "nothing"}
            )
        )


def test_the_sockets_are_the_user_s_alone(two: list[working.Worker], sockets: Path) -> None:
    two[0].said("s1", "files__get")

    (path,) = sockets.iterdir()
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_directory_that_others_may_enter_is_refused(script: scripting.Script, sockets: Path) -> None:
    sockets.mkdir(mode=0o755)
    with working.workers(1, TOOLBELT_SOCKET_DIR=str(sockets)) as (one,):
        assert refused(one, "s1", "files__get")[0] == "tool-unavailable"

    record = models.CallRecord.objects.get(outcome="tool-unavailable")
    assert "must be a directory that belongs to the user alone" in record.error


def test_the_code_of_a_server_s_error_travels_with_it() -> None:
    kind, message = upstream_forwarding.kind(requests.RequestFailedError("There is nothing there.", -32002))

    error = upstream_forwarding._raised(relay.RemoteError(kind, message))

    assert isinstance(error, requests.RequestFailedError)
    assert (error.error_code, str(error)) == (-32002, "There is nothing there.")
