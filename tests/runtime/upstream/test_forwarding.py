"""Tests that all calls of a session reach the process that holds its connection, whichever process receives them."""

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
from tests.runtime import connected, worker_processes
from tests.runtime.connected import stopped as stopped
from toolbelt import models
from toolbelt.control.agents import session_changes as sessions
from toolbelt.control.catalog import entries
from toolbelt.plugins.upstream import relay, requests
from toolbelt.runtime import plugins
from toolbelt.runtime.upstream import forwarding
from toolbelt.store import clock

# Other processes must see what is written.
pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = ("put", "get", "who", "hang", "progress", "fail", "die", "result")


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    """Add a server that keeps a text per connection, and grant its tools to ada."""
    script = scripting.Script(tmp_path)
    text = {"text": {"type": "string"}}
    script.lists(*(listing.tool(name, f"Does {name}.", text if name == "put" else None) for name in TOOLS))
    connected.add("files", {**script.connection, "timeout": 300})
    assert connected.refresh("files")["files"].error == ""
    connected.grant(*(f"files__{tool}" for tool in TOOLS))
    # The worker processes open their own connections.
    plugins.stop()
    return script


@pytest.fixture
def sockets(tmp_path: Path) -> Path:
    return tmp_path / "sockets"


@pytest.fixture
def two(script: scripting.Script, sockets: Path) -> Iterator[list[worker_processes.Worker]]:
    with worker_processes.workers(2, TOOLBELT_SOCKET_DIR=str(sockets)) as workers:
        yield workers


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if is_so():
            return
        time.sleep(0.03)
    raise AssertionError("the condition was not met in time")


def refused(worker: worker_processes.Worker, session: str, tool: str) -> tuple[str, str]:
    answer = worker.call(session, tool).result(60)["answer"]
    assert "code" in answer, answer
    return answer["code"], answer["message"]


def test_a_session_keeps_its_state_across_processes(two: list[worker_processes.Worker]) -> None:
    first, second = two
    assert first.run("s1", "files__put", text="of s1") == "kept"
    assert second.run("s2", "files__put", text="of s2") == "kept"

    assert [worker.run("s1", "files__get") for worker in two] == ["of s1"] * 2
    assert [worker.run("s2", "files__get") for worker in two] == ["of s2"] * 2
    assert first.run("s1", "files__who") == second.run("s1", "files__who")


def test_a_hundred_sessions_that_alternate_between_processes_keep_their_state(
    script: scripting.Script, sockets: Path, tmp_path: Path
) -> None:
    connection = {**script.connection, "max_connections": 100}
    entries.change(connected.OPERATOR, "plugin", "files", {"upstream": connection})
    sessions = [f"s{number}" for number in range(100)]
    with worker_processes.workers(2, TOOLBELT_SOCKET_DIR=str(sockets)) as workers:

        def in_turns(step: int, tool: str) -> list[str]:
            results = []
            # A few at a time, so that calls of many sessions meet in both processes.
            for first in range(0, 100, 10):
                pending = [
                    workers[(number + step) % 2].call(
                        sessions[number], tool, **({"text": sessions[number]} if tool == "files__put" else {})
                    )
                    for number in range(first, first + 10)
                ]
                results += [future.result(60)["answer"]["content"]["result"] for future in pending]
            return results

        assert in_turns(0, "files__put") == ["kept"] * 100
        assert in_turns(1, "files__get") == sessions
        assert in_turns(0, "files__get") == sessions
        assert in_turns(0, "files__who") == in_turns(1, "files__who")
        assert len(set(in_turns(0, "files__who"))) == 100
        assert [worker.end() for worker in workers] == [0, 0]

    assert keeping.processes(tmp_path) == set()
    assert [*sockets.iterdir()] == []
    assert not models.UpstreamConnection.objects.exists()


def test_simultaneous_calls_of_a_new_session_share_one_connection(
    two: list[worker_processes.Worker], script: scripting.Script
) -> None:
    script.delay(0.5)
    pending = [worker.call("s1", "files__who") for _ in range(5) for worker in two]

    assert len({future.result(60)["answer"]["content"]["result"] for future in pending}) == 1


def test_a_session_of_a_killed_process_starts_fresh_in_another(
    two: list[worker_processes.Worker], tmp_path: Path, sockets: Path
) -> None:
    first, second = two
    first.run("s1", "files__put", text="mine")
    assert second.run("s1", "files__get") == "mine"
    (left,) = [int(str(first.run("s1", "files__who")).removeprefix("process "))]

    first.kill()

    assert second.run("s1", "files__get") == "nothing"
    until(lambda: left not in keeping.processes(tmp_path))
    assert len([*sockets.iterdir()]) == 1


def test_a_call_whose_holding_process_is_killed_is_unavailable(
    two: list[worker_processes.Worker], script: scripting.Script
) -> None:
    first, second = two
    first.run("s1", "files__get")
    hanging = second.call("s1", "files__hang")
    until(script.has_begun_to_hang)

    first.kill()

    assert hanging.result(60)["answer"]["code"] == "tool-unavailable"
    record = models.CallRecord.objects.get(outcome="tool-unavailable")
    assert record.error == "The process that held the connection ended before the tool answered."
    assert second.run("s1", "files__get") == "nothing"


def test_progress_and_errors_are_forwarded_between_processes(two: list[worker_processes.Worker]) -> None:
    first, second = two
    first.run("s1", "files__get")

    assert second.call("s1", "files__progress").result(60)["steps"] == ["step 1", "step 2"]
    assert refused(second, "s1", "files__fail") == ("tool-failed", "There is no such file.")
    assert refused(second, "s1", "files__die")[0] == "tool-unavailable"
    # The process that held the connection has restarted the server.
    assert second.run("s1", "files__who") == first.run("s1", "files__who")


def test_a_server_without_permission_cannot_ask_the_user_through_another_process(
    two: list[worker_processes.Worker], script: scripting.Script
) -> None:
    question = {"message": "Your password?", "requestedSchema": {"type": "object", "properties": {}}}
    request = {"method": "elicitation/create", "params": question}
    script.results_in({"resultType": "input_required", "content": [], "inputRequests": {"q": request}})
    # The server supports the MCP revision that has such results.
    script.offers({"server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}})
    first, second = two

    refusal = refused(first, "s1", "files__result")
    assert refusal == ("tool-failed", "The server asks for input that is not available here.")
    assert refused(second, "s1", "files__result") == refusal


def test_a_forwarded_call_denied_before_it_is_sent_does_not_run(
    two: list[worker_processes.Worker], script: scripting.Script
) -> None:
    first, second = two
    first.run("s1", "files__put", text="mine")
    # The upstream server has died: the process that holds the connection waits until it has restarted.
    first.call("s1", "files__die").result(60)
    calls = script.calls
    script.delay(3)
    starts = script.starts
    waiting = second.call("s1", "files__get")
    until(lambda: script.starts > starts)

    # Not an emergency stop, which would cancel the call differently.
    connected.grant("files__who")

    assert waiting.result(60)["answer"]["code"] == "unknown-tool"
    assert second.run("s1", "files__who")
    assert script.calls == calls + 1


def test_cancelling_a_forwarded_call_cancels_it_at_the_server(
    two: list[worker_processes.Worker], script: scripting.Script
) -> None:
    first, second = two
    first.run("s1", "files__get")
    second.call("s1", "files__hang")
    until(script.has_begun_to_hang)

    second.cancel("s1")

    until(script.has_heard_of_a_cancellation)
    assert second.run("s1", "files__get") == "nothing"


def test_a_connection_closed_by_its_process_is_reopened_by_another(
    script: scripting.Script, sockets: Path, tmp_path: Path
) -> None:
    connection = {**script.connection, "idle": 1}
    entries.change(connected.OPERATOR, "plugin", "files", {"upstream": connection})
    with worker_processes.workers(2, TOOLBELT_SOCKET_DIR=str(sockets)) as (first, second):
        first.run("s1", "files__put", text="mine")
        assert second.run("s1", "files__get") == "mine"
        until(lambda: not keeping.processes(tmp_path))

        assert second.run("s1", "files__get") == "nothing"


def test_an_evicted_session_starts_fresh_in_every_process(
    two: list[worker_processes.Worker], sockets: Path, settings: Any
) -> None:
    settings.TOOLBELT_SOCKET_DIR = str(sockets)
    first, second = two
    assert first.run("s1", "files__put", text="of s1") == "kept"
    assert second.run("s1", "files__get") == "of s1"

    sessions.evict(connected.OPERATOR, "ada", "s1")

    assert [worker.run("s1", "files__get") for worker in two] == ["nothing"] * 2


def test_a_connection_held_by_another_host_is_not_opened_again(two: list[worker_processes.Worker]) -> None:
    first, second = two
    first.run("s1", "files__get")
    models.UpstreamConnection.objects.update(host="elsewhere/0", address="/nowhere")

    assert refused(second, "s1", "files__get")[0] == "tool-unavailable"
    record = models.CallRecord.objects.get(outcome="tool-unavailable")
    assert record.error == (
        "This session's connection to files is held by another host (elsewhere): route each session to one host"
        " (sticky sessions)."
    )


def test_an_expired_connection_of_another_host_is_reopened(two: list[worker_processes.Worker]) -> None:
    first, second = two
    first.run("s1", "files__get")
    models.UpstreamConnection.objects.update(host="elsewhere/0", address="/nowhere", expires=clock.now())

    assert second.run("s1", "files__get") == "nothing"


def test_a_connection_of_a_hanging_process_is_reopened_after_its_claim_expires(
    script: scripting.Script, sockets: Path
) -> None:
    def outcome(worker: worker_processes.Worker, tool: str, **arguments: str) -> str:
        answer = worker.call("s1", tool, **arguments).result(60)["answer"]
        return str(answer["content"]["result"]) if not answer["is_error"] else str(answer["code"])

    settings = {"TOOLBELT_SOCKET_DIR": str(sockets), "TOOLBELT_CALL_SECONDS": 6.0}
    with worker_processes.workers(2, **settings) as (first, second):
        # A loaded machine may take longer to start the server than a call may take.
        until(lambda: outcome(first, "files__put", text="mine") == "kept")
        until(lambda: outcome(second, "files__get") == "mine")
        os.kill(first.pid, signal.SIGSTOP)
        assert refused(second, "s1", "files__get")[0] == "timed-out"

        models.UpstreamConnection.objects.update(expires=clock.now() - dt.timedelta(seconds=1))

        # A loaded machine may take longer to start the server than this call may take.
        until(
            lambda: (
                second.call("s1", "files__get").result(60)["answer"].get("content") == {"result": "nothing"}
            )
        )


def test_the_sockets_are_accessible_only_to_the_user(
    two: list[worker_processes.Worker], sockets: Path
) -> None:
    two[0].run("s1", "files__get")

    (path,) = sockets.iterdir()
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_socket_directory_accessible_to_others_is_refused(script: scripting.Script, sockets: Path) -> None:
    sockets.mkdir(mode=0o755)
    with worker_processes.workers(1, TOOLBELT_SOCKET_DIR=str(sockets)) as (first,):
        assert refused(first, "s1", "files__get")[0] == "tool-unavailable"

    record = models.CallRecord.objects.get(outcome="tool-unavailable")
    assert "must be a directory that belongs to the user alone" in record.error


def test_the_error_code_of_a_server_is_forwarded() -> None:
    kind, message = forwarding.kind(requests.RequestFailedError("There is nothing there.", -32002))

    error = forwarding._raised(relay.RemoteError(kind, message))

    assert isinstance(error, requests.RequestFailedError)
    assert (error.error_code, str(error)) == (-32002, "There is nothing there.")
