"""Tests which sessions share the state that an upstream server keeps per connection."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.plugins.upstream import keeping, listing, scripting, serving
from tests.runtime import connected
from tests.runtime.connected import script as script
from tests.runtime.connected import stopped as stopped
from tests.runtime.connected import wait_for_news as wait_for_news
from toolbelt import models
from toolbelt.control.agents import agents, session_changes
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.core import admitting as gate
from toolbelt.core import errors
from toolbelt.core.imported import rewordings
from toolbelt.runtime import calls, plugins
from toolbelt.runtime.upstream import status
from toolbelt.store import snapshots

# Another thread writes the unsolicited answers of a connection.
pytestmark = pytest.mark.django_db(transaction=True)


def ready(connection: dict[str, Any]) -> None:
    """Add the server that keeps state, and grant its tools to two agents."""
    connected.add("keeping", connection)
    assert connected.refresh("keeping")["keeping"].error == ""
    tools = sorted(models.Tool.objects.values_list("key", flat=True))
    belts.import_(
        connected.OPERATOR, {"agents": [{"key": "ada", "tools": tools}, {"key": "bob", "tools": tools}]}
    )


def ask(agent: str, session: str | None, tool: str, **arguments: Any) -> str:
    answer = calls.run(agent, f"keeping__{tool}", arguments, session)
    assert isinstance(answer, calls.Result), answer
    return str(answer.content["result"])


def ask_in_thread(agent: str, session: str | None, tool: str) -> str:
    try:
        return ask(agent, session, tool)
    finally:
        connection.close()


def number(who: str) -> int:
    return int(who.removeprefix("process "))


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("the condition was not met in time")


@pytest.fixture(params=["stdio", "http"])
def reached(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    if request.param == "stdio":
        yield keeping.over_pipes(tmp_path)
        return
    with keeping.over_http() as url:
        yield {"url": url}


SESSIONS = [("ada", "s1"), ("ada", "s2"), ("bob", "s1"), ("ada", None), ("bob", None)]


def texts_after_storing(reached: dict[str, Any]) -> list[str]:
    """Store a text in each session of each agent in turn, and return the text that each reads afterwards."""
    ready(reached)
    for agent, session in SESSIONS:
        ask(agent, session, "put", text=f"{agent} {session}")
    return [ask(agent, session, "get") for agent, session in SESSIONS]


def test_each_session_of_each_agent_has_its_own_state(reached: dict[str, Any]) -> None:
    assert texts_after_storing(reached) == ["ada s1", "ada s2", "bob s1", "ada None", "bob None"]
    assert status.read("keeping").sharing == "session"


def test_sessions_of_an_agent_share_state_if_configured(reached: dict[str, Any]) -> None:
    assert texts_after_storing({**reached, "sharing": "agent"}) == [
        "ada None",
        "ada None",
        "bob None",
        "ada None",
        "bob None",
    ]


def test_all_agents_share_state_if_configured(reached: dict[str, Any]) -> None:
    assert texts_after_storing({**reached, "sharing": "shared"}) == ["bob None"] * 5
    assert status.read("keeping").open_connections == 1


def test_a_subagent_shares_the_state_of_its_session(tmp_path: Path) -> None:
    ready(keeping.over_pipes(tmp_path))
    toolkit = {"key": "keepers", "members": [f"keeping__{tool}" for tool in keeping.TOOLS]}
    loadout = {"name": "research", "plugins": ["keeping"]}
    belts.import_(connected.OPERATOR, {"toolkits": [toolkit], "loadouts": [loadout]})
    ask("ada", "s1", "put", text="mine")

    result = calls.run("ada", "keeping__get", {}, "s1", subagent="explore")

    assert isinstance(result, calls.Result), result
    assert result.content == {"result": "mine"}


def test_a_server_over_http_without_sessions_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOKEN", serving.TOKEN)
    with serving.served() as address:
        connected.add("served", {"url": address, "headers": {"Authorization": "Bearer ${MCP_TOKEN}"}})
        connected.refresh("served")
        connected.grant("served__add")
        for session in ("s1", "s2"):
            calls.run("ada", "served__add", {"one": 1, "other": 2}, session)
        now = status.read("served")

    assert (now.sharing, now.open_connections) == ("shared", 1)


def test_the_listing_connection_serves_the_first_session(tmp_path: Path) -> None:
    ready(keeping.over_pipes(tmp_path))
    (listed,) = keeping.processes(tmp_path)

    assert ask("ada", "s1", "who") == f"process {listed}"
    assert ask("ada", "s2", "who") != f"process {listed}"


def test_a_refresh_does_not_use_a_session_s_connection(tmp_path: Path) -> None:
    ready(keeping.over_pipes(tmp_path))
    used = {ask("ada", "s1", "who")}

    assert connected.refresh("keeping")["keeping"].error == ""

    assert len(keeping.processes(tmp_path)) == 2
    assert ask("ada", "s1", "who") in used


def test_an_idle_connection_is_closed_and_its_session_starts_fresh(tmp_path: Path) -> None:
    ready({**keeping.over_pipes(tmp_path), "idle": 1})
    ask("ada", "s1", "put", text="mine")

    until(lambda: not keeping.processes(tmp_path))

    assert ask("ada", "s1", "get") == "nothing"


def test_an_evicted_session_starts_fresh(tmp_path: Path) -> None:
    ready(keeping.over_pipes(tmp_path))
    for session in ("s1", "s2"):
        ask("ada", session, "put", text="mine")

    session_changes.evict(connected.OPERATOR, "ada", "s1")

    assert [ask("ada", session, "get") for session in ("s1", "s2")] == ["nothing", "mine"]
    with pytest.raises(errors.NotFound):
        session_changes.evict(connected.OPERATOR, "ada", "s3")


def archived() -> None:
    agents.archive(connected.OPERATOR.replace(confirm=True), "ada", True)


def deleted() -> None:
    entries.remove(connected.OPERATOR.replace(confirm=True), "agent", "ada")


@pytest.mark.parametrize("end", [archived, deleted])
def test_archiving_or_deleting_an_agent_closes_its_connections(
    tmp_path: Path, end: Callable[[], None]
) -> None:
    ready(keeping.over_pipes(tmp_path))
    for agent, session in (("ada", "s1"), ("ada", None), ("bob", "ada")):
        ask(agent, session, "put", text="mine")
    bobs = number(ask("bob", "ada", "who"))

    end()

    until(lambda: keeping.processes(tmp_path) == {bobs})
    assert [claim.holder for claim in models.UpstreamConnection.objects.all()] == ["session bob/ada"]


def test_a_connection_with_a_running_call_is_not_idle(tmp_path: Path) -> None:
    ready({**keeping.over_pipes(tmp_path), "idle": 1})
    with concurrent.futures.ThreadPoolExecutor() as pool:
        held = pool.submit(ask_in_thread, "ada", "s1", "hold")
        until(lambda: bool([*tmp_path.glob("begun-*")]))
        # Opened and closed meanwhile by the thread that closes idle connections.
        other = number(ask("ada", "s2", "who"))
        until(lambda: other not in keeping.processes(tmp_path))
        (tmp_path / "go").touch()

        assert held.result(30) == "held"


def test_the_longest_idle_connection_is_closed_at_the_limit(tmp_path: Path) -> None:
    ready({**keeping.over_pipes(tmp_path), "max_connections": 2})
    first, second = (ask("ada", session, "who") for session in ("s1", "s2"))
    assert ask("ada", "s1", "who") == first

    third = ask("ada", "s3", "who")

    until(lambda: keeping.processes(tmp_path) == {number(first), number(third)})
    assert ask("ada", "s1", "who") == first
    assert second not in (first, third)


@pytest.mark.parametrize("limit", ["of the server", "of the process"])
def test_a_call_is_refused_while_every_connection_is_busy(tmp_path: Path, settings: Any, limit: str) -> None:
    reached = keeping.over_pipes(tmp_path)
    if limit == "of the server":
        reached["max_connections"] = 1
    else:
        settings.TOOLBELT_UPSTREAM_CONNECTIONS = 1
    ready(reached)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        held = pool.submit(ask_in_thread, "ada", "s1", "hold")
        until(lambda: bool([*tmp_path.glob("begun-*")]))

        refused = calls.run("ada", "keeping__get", {}, "s2")
        (tmp_path / "go").touch()
        assert held.result(30) == "held"

    assert isinstance(refused, gate.Refusal)
    assert refused.code == "tool-unavailable"
    assert "all connections to its server are in use" in refused.message
    (record,) = models.CallRecord.objects.filter(outcome="tool-unavailable")
    named = "max_connections of keeping" if limit == "of the server" else "TOOLBELT_UPSTREAM_CONNECTIONS"
    assert record.error == f"1 connections are open and have calls under way, and {named} allows 1."


@pytest.mark.parametrize("change", [{"blocked": True}, {"active": False}])
def test_disabling_or_blocking_a_server_closes_all_its_connections(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    ready(keeping.over_pipes(tmp_path))
    for session in ("s1", "s2"):
        ask("ada", session, "who")

    entries.change(connected.OPERATOR, "plugin", "keeping", change)
    assert isinstance(calls.run("ada", "keeping__get", {}, "s1"), gate.Refusal)

    until(lambda: not keeping.processes(tmp_path))


def test_stopping_the_process_closes_all_connections(tmp_path: Path) -> None:
    ready(keeping.over_pipes(tmp_path))
    for session in ("s1", "s2", "s3"):
        ask("ada", session, "who")

    plugins.stop()

    assert keeping.processes(tmp_path) == set()


def test_a_list_of_one_session_does_not_change_the_catalog(
    script: scripting.Script, tmp_path: Path, wait_for_news: Callable[[], None]
) -> None:
    connected.ready(script, "announce", "echo")
    # The first connection has listed already; later ones list what the file contains.
    calls.run("ada", "files__echo", {}, "s1")
    script.lists(listing.tool("announce", "Does announce."), listing.tool("echo", "Says it again!"))

    calls.run("ada", "files__announce", {}, "s1")
    wait_for_news()

    # The list was requested over separate connections without a session.
    assert script.starts == 2 + rewordings.MAX_LISTED_AGAIN
    assert snapshots.catalog().tools["files__echo"].description == "Says it again!"
    assert isinstance(calls.run("ada", "files__echo", {}, "s1"), gate.Refusal)
