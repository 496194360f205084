"""Tests that doctor, Overview, Review, `mcp list` and `/readyz?full` agree on the state of plugins and held tools."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest
from django import test
from django.contrib.auth import get_user_model
from django.core.management import call_command

from tests import factories
from tests.runtime.connected import stopped as stopped
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.reports import attention
from toolbelt.control.servers import client_plugins, inbox, running_tools, upstream_servers
from toolbelt.core.imported import importing
from toolbelt.runtime import process_problems
from toolbelt.store import running_processes

WRITE = writing.by("olive", via="command")
NEEDS_VARIABLE = {"url": "https://example.com/mcp", "headers": {"X-Key": "${STATES_TEST_KEY}"}}
TOOL = {"name": "find", "description": "Finds.", "inputSchema": {"type": "object"}}

pytestmark = pytest.mark.django_db


def doctor() -> list[dict[str, str]]:
    """Return the findings of `doctor` about plugins and servers; no server is asked."""
    output = io.StringIO()
    with contextlib.suppress(SystemExit):
        call_command("doctor", "--json", "--no-servers", stdout=output)
    codes = ("server-", "plugin", "not-running")
    return [
        finding for finding in json.loads(output.getvalue())["findings"] if finding["code"].startswith(codes)
    ]


def readyz(client: test.Client) -> list[dict[str, str]]:
    client.force_login(get_user_model().objects.get_or_create(username="olive", is_staff=True)[0])
    answer = client.get("/readyz?full")
    assert answer.status_code == 200
    findings: list[dict[str, str]] = answer.json()["findings"]
    return findings


def printed(*command: str) -> str:
    output = io.StringIO()
    call_command(*command, stdout=output)
    return output.getvalue()


def add(name: str, **connection: Any) -> None:
    upstream_servers.add(WRITE, name, connection or {"url": "https://example.com/mcp"})


def serve(*problems: running_processes.Problem, tools: Any = ()) -> None:
    """Let a server process report."""
    running_tools.report("one", tools, problems=problems)


def messages(findings: list[dict[str, str]]) -> list[str]:
    return [f"{finding['code']}: {finding['message']}" for finding in findings]


def test_a_failed_server_is_a_problem_everywhere(client: test.Client) -> None:
    add("github")
    upstream_servers.record(WRITE, "github", importing.ServerListing(error="Connection refused."))

    [message] = messages(doctor())

    assert message.startswith(
        "server-failed: The server github has failed: Connection refused (seen by command "
    )
    assert messages(readyz(client)) == [message]
    assert [failed.plugin.name for failed in attention.load().failed_plugins] == ["github"]
    assert " failed " in printed("mcp", "list")


def test_a_server_that_did_not_respond_to_a_call_is_reported_with_the_process_that_called() -> None:
    add("github")
    running_processes.be_server(True)
    upstream_servers.record_unsolicited("github", importing.ServerListing(error="Timed out."))
    running_processes.be_server(False)

    [message] = messages(doctor())

    assert message.startswith(
        "server-not-responding: The server github does not respond: Timed out (seen by server "
    )
    assert "not responding" in printed("mcp", "list")


def test_a_server_that_answers_but_lists_nothing_is_reported() -> None:
    add("github")
    upstream_servers.record(WRITE, "github", importing.ServerListing())

    [message] = messages(doctor())

    assert message == "server-empty: The server github answers, but lists no tool."


def test_held_tools_of_servers_and_of_programs_are_counted_alike(client: test.Client) -> None:
    add("github")
    upstream_servers.record(WRITE, "github", importing.ServerListing(tools=(TOOL,)))
    factories.plugin("shop", namespace="shop")
    client_plugins.declare(WRITE, "shop", [{"name": "refund"}, {"name": "find"}])

    expected = {"github": 1, "shop": 2}

    assert attention.load().to_review == expected
    assert inbox.load(maximum=10).by_plugin == expected
    assert messages(doctor()) == [
        "server-review: The server github has 1 tool to review.",
        "server-review: The plugin shop has 2 tools to review.",
    ]
    assert messages(readyz(client)) == messages(doctor())


def test_a_variable_that_only_the_server_process_lacks_is_reported_with_that_process(
    monkeypatch: pytest.MonkeyPatch, client: test.Client
) -> None:
    add("github", **NEEDS_VARIABLE)
    serve(*process_problems.find())
    monkeypatch.setenv("STATES_TEST_KEY", "only in the shell of the command")

    [message] = messages(doctor())

    name = models.RunningProcess.objects.get().name
    assert message == (
        "server-variable: The server github needs the variable STATES_TEST_KEY, which is not set"
        f" (seen by {name})."
    )
    assert messages(readyz(client)) == [message]


def test_a_variable_that_only_the_command_lacks_is_no_problem_while_a_server_runs() -> None:
    add("github", **NEEDS_VARIABLE)
    assert [finding["code"] for finding in doctor()] == ["server-variable"]

    serve()

    assert doctor() == []


def test_a_server_that_has_ended_decides_no_longer() -> None:
    add("github", **NEEDS_VARIABLE)
    serve()
    running_processes.end("one")

    [message] = messages(doctor())

    assert "(seen by" not in message


def test_tools_that_no_process_runs_are_reported_before_and_after_a_server_starts(
    client: test.Client,
) -> None:
    plugin = factories.plugin("kb", namespace="kb", in_code=True)
    factories.tool("kb__find", plugin=plugin)
    expected = ["not-running: No process can run 1 tool of the plugin kb: kb__find."]

    assert messages(doctor()) == expected

    serve()

    assert messages(doctor()) == expected
    assert messages(readyz(client)) == expected
    assert [of.name for of in attention.load().not_running] == ["kb"]

    serve(tools=["kb__find"])

    assert messages(doctor()) == []


def test_what_is_off_is_not_reported_as_failed() -> None:
    factories.plugin("kb", in_code=True, active=False, status="failed", error="broken")
    assert doctor() == []
    assert attention.load().failed_plugins == []
