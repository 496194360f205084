"""Tests of people whose own clients call, with their own accounts at a server: the official client's OAuth on one side,
and the official SDK's server on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from tests import fast_fixtures, signed_in
from tests.front.conftest import ada as ada
from tests.mcp.conftest import Client, Endpoint
from tests.mcp.offering import refresh
from tests.oauth.conftest import person
from tests.oauth.test_official_client import Person, Storage, connected
from tests.oauth.test_official_client import run as run
from tests.plugins.upstream import oauth_server
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.servers import upstream_servers
from toolbelt.runtime import masking, plugins
from toolbelt.store import snapshots

TOOL = "notes__note"


@pytest.fixture
def notes(stored: None, settings: Any) -> Iterator[oauth_server.Running]:
    """Run a server where each person signs in, whose tool ada has."""
    settings.TOOLBELT_ENCRYPTION_KEYS = [signed_in.KEY]
    with oauth_server.running() as server:
        connection = {"url": server.url, "sign_in": "person"}
        upstream_servers.add(signed_in.SHELL, "notes", connection, trusted=True)
        operator = get_user_model().objects.create_superuser("operator")
        signed_in.sign_in(fast_fixtures.logged_in(operator))
        refresh("notes")
        belts.import_(signed_in.SHELL, {"toolkits": [{"key": "memory_notes", "members": [TOOL]}]})
        switches.flip(signed_in.SHELL.replace(confirm=True), "ada", "memory_notes", True)
        yield server
        plugins.stop()
    snapshots.forget()
    masking.forget()


@pytest.fixture
def people(notes: oauth_server.Running) -> dict[str, Any]:
    """Return two people who may use every agent, and have accounts of their own at the server."""
    found = {name: person(name, "add_clientconnection") for name in ("mona", "nora")}
    for user in found.values():
        browser = fast_fixtures.logged_in(user)
        came = signed_in.sign_in(browser, begin="/account/servers/{}/sign-in/")
        assert came.headers["location"] == "/account/"
    return found


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_clients_of_two_people_call_with_the_account_of_each(
    people: dict[str, Any], notes: oauth_server.Running, run: Callable[..., None], mode: str
) -> None:
    accounts = [*notes.state.clients][-2:]

    async def act(address: str) -> None:
        for _ in range(2):
            for name, user in people.items():
                in_browser, storage = Person(user), Storage()
                async with connected(f"{address}/mcp/ada", in_browser, storage, mode) as (client, _):
                    assert TOOL in [tool.name for tool in (await client.list_tools()).tools]
                    result = await client.call_tool(TOOL, {"text": name})
                    assert not result.is_error, result
                    assert result.structured_content == {"result": f"kept {name}"}

    run(act)
    assert notes.state.callers == accounts * 2
    called = models.CallRecord.objects.filter(tool=TOOL).order_by("id")
    assert [*called.values_list("agent", "person")] == [("ada", "mona"), ("ada", "nora")] * 2


def test_the_client_of_a_person_without_an_account_uses_no_other(
    people: dict[str, Any], notes: oauth_server.Running, run: Callable[..., None], olive: Any
) -> None:
    async def act(address: str) -> None:
        async with connected(f"{address}/mcp/ada", Person(olive), Storage(), "legacy") as (client, _):
            result = await client.call_tool(TOOL, {"text": "x"})
            assert result.meta is not None
            assert result.meta["toolbelt/refusal"]["code"] == "sign-in-needed"

    run(act)
    assert notes.state.callers == []


def test_a_token_calls_with_no_ones_account(
    people: dict[str, Any], notes: oauth_server.Running, endpoint: Endpoint, ada: str
) -> None:
    answer = Client(endpoint=endpoint, token=ada).ask(
        "tools/call", {"name": TOOL, "arguments": {"text": "x"}}
    )
    assert answer.result["_meta"]["toolbelt/refusal"]["code"] == "sign-in-needed"
    assert notes.state.callers == []
    record = models.CallRecord.objects.latest("id")
    assert (record.outcome, record.person) == ("sign-in-needed", "")
