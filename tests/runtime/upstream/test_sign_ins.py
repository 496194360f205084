"""Tests of calls at servers that are signed in to: tokens that expire, are renewed, and end."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.test import Client

from tests import fast_fixtures, signed_in
from tests.plugins.upstream import oauth_server
from tests.runtime import connected, worker_processes
from tests.runtime.calls import asked
from tests.runtime.connected import stopped as stopped
from tests.store import conftest
from toolbelt import models
from toolbelt.control.alerts import events
from toolbelt.control.catalog import entries
from toolbelt.control.reports import attention
from toolbelt.control.servers import upstream_servers
from toolbelt.core import admitting, catalog, connections
from toolbelt.plugins.upstream import authorization
from toolbelt.runtime import calls, masking, threads
from toolbelt.runtime.upstream import process_connections, sign_ins
from toolbelt.store import clock, listings, server_sign_ins, snapshots

# Other threads, and other processes, read and renew tokens.
pytestmark = pytest.mark.django_db(transaction=True)

TOOL = "notes__note"
Serve = Callable[..., oauth_server.Running]


@pytest.fixture(autouse=True)
def with_a_key(settings: Any) -> Iterator[None]:
    settings.TOOLBELT_ENCRYPTION_KEYS = [signed_in.KEY]
    yield
    masking.forget()


@pytest.fixture
def browser() -> Client:
    user = get_user_model().objects.create_superuser("olive")
    return fast_fixtures.logged_in(user)


@pytest.fixture
def serve(browser: Client) -> Iterator[Serve]:
    """Yield a function that runs a server, signs in there, and grants its tool to ada."""
    running: list[Any] = []

    def serve(**options: Any) -> oauth_server.Running:
        context = oauth_server.running(**options)
        server = context.__enter__()
        running.append(context)
        connected.add("notes", {"url": server.url})
        assert signed_in.sign_in(browser).status_code == 303
        assert connected.refresh("notes")["notes"].error == ""
        connected.grant(TOOL)
        return server

    yield serve
    for context in running:
        context.__exit__(None, None, None)


def answer(text: str = "x") -> Any:
    return calls.run("ada", TOOL, {"text": text})


def recorded() -> str:
    """Return the reason of the last call, for operators."""
    return str(models.CallRecord.objects.latest("id").error)


def stored() -> server_sign_ins.SignIn:
    found = server_sign_ins.find("notes")
    assert found is not None
    return found


def test_a_call_has_the_token_of_the_sign_in(serve: Serve) -> None:
    server = serve()
    assert connected.content(TOOL, {"text": "milk"}) == {"result": "kept milk"}
    assert server.state.refreshes == []


def test_workers_renew_a_token_once_for_each_expiry(serve: Serve, settings: Any) -> None:
    server = serve(seconds=2)
    began = time.monotonic()
    with worker_processes.workers(2, TOOLBELT_ENCRYPTION_KEYS=[signed_in.KEY]) as workers:
        number = 0
        while time.monotonic() < began + 7 or number < 200:
            calls_ = [
                worker.call(f"s-{number}-{each}", TOOL, text="x") for worker in workers for each in range(10)
            ]
            for call in calls_:
                result = call.result(60)
                assert not result["answer"]["is_error"], result
            number += len(calls_)
        expiries = (time.monotonic() - began) / 1.8
    assert number >= 200
    assert 2 <= len(server.state.refreshes) <= expiries + 1
    assert all(after - before > 1.5 for before, after in _pairs(server.state.refreshes))


def test_a_tool_that_is_taken_away_while_a_token_is_renewed_does_not_run(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(seconds=2)
    answer("warm")
    refresh, before = authorization.refresh, server.state.calls

    async def renewed(grant: Any, **options: Any) -> Any:
        new = await refresh(grant, **options)
        await threads.run(connected.grant)
        return new

    monkeypatch.setattr(authorization, "refresh", renewed)
    time.sleep(2.1)
    assert isinstance(answer("late"), admitting.Refusal)
    assert len(server.state.refreshes) == 1
    assert server.state.calls == before


def test_a_renewal_is_stored_although_who_waits_gives_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(seconds=2)
    refresh, sealed = authorization.refresh, stored().sealed
    tokens = sign_ins.Tokens(*notes())

    async def slow(grant: Any, **options: Any) -> Any:
        new = await refresh(grant, **options)
        await asyncio.sleep(0.5)
        return new

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await tokens.current()
        while (await threads.run(stored)).sealed == sealed:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    monkeypatch.setattr(authorization, "refresh", slow)
    time.sleep(2.1)
    asyncio.run(asyncio.wait_for(give_up(), 60))
    assert len(server.state.refreshes) == 1
    assert not stored().ended


def _pairs(times: list[float]) -> list[tuple[float, float]]:
    return list(itertools.pairwise(times))


_COMES_BACK = """
import json, sys, django
django.setup()
from django.test import Client
browser = Client()
browser.cookies["sessionid"] = sys.argv[1]
print(browser.get("/signed-in/", json.loads(sys.argv[2])).status_code)
"""


def test_a_sign_in_that_one_process_began_ends_in_another(browser: Client) -> None:
    with oauth_server.running() as server:
        connected.add("notes", {"url": server.url})
        back = signed_in.consent(signed_in.begin(browser))
        assert server_sign_ins.find("notes") is None
        environment = {
            **os.environ,
            "DATABASE_URL": conftest.address(),
            "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
            "TOOLBELT_ENV": "test",
            "TOOLBELT_ENCRYPTION_KEYS": signed_in.KEY,
        }
        session = browser.cookies["sessionid"].value
        arguments = [sys.executable, "-c", _COMES_BACK, session, json.dumps(back)]
        came = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    assert came.stdout.split()[-1] == "303"
    assert stored().signed_in_by == "olive"


def test_a_token_that_the_server_refuses_is_renewed_and_the_call_sent_again(serve: Serve) -> None:
    server = serve()
    connected.content(TOOL, {"text": "a"})
    time.sleep(1.1)
    server.state.access.clear()
    assert connected.content(TOOL, {"text": "b"}) == {"result": "kept b"}
    assert len(server.state.refreshes) == 1
    assert server.state.calls == 2


def test_a_server_that_refuses_new_tokens_too_costs_a_renewal_less_and_less_often(serve: Serve) -> None:
    server = serve()
    begun = clock.now() + dt.timedelta(seconds=2)
    renewals = []
    for minute in range(20):
        with clock.stopped(begun + dt.timedelta(minutes=minute)):
            for _ in range(3):
                asyncio.run(refused_once(sign_ins.Tokens(*notes())))
        renewals.append(len(server.state.refreshes))
    # Each minute, until the pause of 64 seconds; then after two, three and five.
    assert (renewals[0], renewals[5], renewals[-1]) == (1, 6, 9)


def test_a_token_that_served_long_enough_is_renewed_at_once(serve: Serve) -> None:
    server = serve(seconds=86_400)
    models.ServerSignIn.objects.update(refusals=20)
    with clock.stopped(clock.now() + dt.timedelta(hours=2)):
        asyncio.run(refused_once(sign_ins.Tokens(*notes())))
    assert (len(server.state.refreshes), stored().refusals) == (1, 1)


async def refused_once(tokens: sign_ins.Tokens) -> None:
    """Ask for a token, and for another one because the server refuses it."""
    await tokens.renewed(await tokens.current())


def notes() -> tuple[catalog.Plugin, connections.Connection]:
    plugin = snapshots.catalog().plugins["notes"]
    settings = connections.read(plugin.upstream)
    assert settings is not None
    return plugin, settings


def test_calls_at_a_server_that_refuses_every_token_cost_one_renewal(serve: Serve) -> None:
    server = serve()
    connected.content(TOOL, {"text": "a"})
    server.state.refuses_access = True
    with clock.stopped(clock.now() + dt.timedelta(seconds=2)):
        for _ in range(5):
            assert answer().code == "tool-unavailable"
    assert len(server.state.refreshes) == 1


def test_a_call_that_people_approved_is_sent_again_too(serve: Serve) -> None:
    server = serve()
    connected.content(TOOL, {"text": "a"})
    rule = {"key": "unchecked", "effect": "ask", "tools": [TOOL], "without": ["checked"]}
    entries.put(connected.OPERATOR, "gate_rule", rule)
    assert answer("b").code == "approval-pending"
    asked.approve()
    time.sleep(1.1)
    server.state.access.clear()
    assert connected.content(TOOL, {"text": "b"}) == {"result": "kept b"}
    assert (server.state.calls, asked.states()) == (2, ["done"])


def test_a_server_that_does_not_rotate_keeps_its_refresh_token(serve: Serve) -> None:
    server = serve(seconds=1, rotates=False)
    for text in "abc":
        connected.content(TOOL, {"text": text})
        time.sleep(1.1)
    assert len(server.state.refreshes) >= 2


def test_a_revoked_grant_is_answered_with_the_reason_and_asked_once(serve: Serve) -> None:
    server = serve()
    connected.content(TOOL, {"text": "a"})
    time.sleep(1.1)
    server.state.revoke()
    before = server.state.token_requests
    for _ in range(5):
        refused = answer()
        assert (refused.code, "has to sign in" in refused.message) == ("tool-unavailable", True)
    assert server.state.token_requests == before + 1
    recorded = connected.refresh("notes")["notes"]
    assert recorded.error
    assert server.state.token_requests == before + 1
    plugin, listing = snapshots.catalog().plugins["notes"], listings.find("notes")
    assert listings.state(plugin, listing) == "sign-in-needed"
    tool = models.Tool.objects.get(key=TOOL)
    assert (tool.retired, tool.seen) == (False, True)


def test_pages_know_of_a_revoked_grant_after_the_first_call(serve: Serve) -> None:
    server = serve()
    connected.content(TOOL, {"text": "a"})
    time.sleep(1.1)
    server.state.revoke()
    answer()
    plugin, listing = snapshots.catalog().plugins["notes"], listings.find("notes")
    assert listings.state(plugin, listing) == "sign-in-needed"


def test_another_sign_in_makes_calls_work_again(serve: Serve, browser: Client) -> None:
    server = serve()
    connected.content(TOOL, {"text": "a"})
    time.sleep(1.1)
    server.state.revoke()
    assert answer().code == "tool-unavailable"
    signed_in.sign_in(browser)
    assert connected.refresh("notes")["notes"].error == ""
    assert connected.content(TOOL, {"text": "b"}) == {"result": "kept b"}


def test_an_authorization_server_that_is_down_is_asked_once_for_each_pause(serve: Serve) -> None:
    server = serve(seconds=1)
    time.sleep(1.1)
    server.state.is_down = True
    before = server.state.token_requests
    for _ in range(5):
        refused = answer()
        assert (refused.code, "could not be renewed" in recorded()) == ("tool-unavailable", True)
    assert server.state.token_requests == before + 1
    assert not stored().ended


def test_no_token_is_sent_to_another_address(serve: Serve) -> None:
    serve()
    with oauth_server.running() as other:
        upstream_servers.replace_connection(
            connected.OPERATOR, "notes", {"url": other.url, "sign_in": "shared"}
        )
        recorded = connected.refresh("notes")["notes"]
    assert "address of notes has changed" in recorded.error


def test_a_token_is_in_no_database_in_clear(serve: Serve) -> None:
    server = serve()
    connected.content(TOOL, {"text": "a"})
    rows = [repr(row) for model in _models() for row in model.objects.values_list()]
    secrets = [*server.state.issued, *(client.client_id for client in server.state.clients.values())]
    assert not [secret for secret in secrets if any(str(secret) in row for row in rows)]


def _models() -> Any:
    from django.apps import apps

    return apps.get_models()


def test_a_refusal_that_quotes_the_token_is_stored_without_it(serve: Serve) -> None:
    server = serve()
    time.sleep(1.1)
    server.state.access.clear()
    server.state.refuses_refresh = "invalid_grant"
    answer()
    sent = [token for token in server.state.issued if token.startswith("refresh")]
    assert "invalid_grant: not [withheld]" in recorded()
    assert not any(token in stored().error for token in sent)


def test_scopes_that_a_call_demands_are_asked_for_by_the_next_sign_in(serve: Serve, browser: Client) -> None:
    server = serve()
    server.state.demanded = oauth_server.MORE
    for _ in range(2):
        refused = answer()
        assert (refused.code, "sign in at its server again" in refused.message) == ("tool-unavailable", True)
        assert (oauth_server.MORE in recorded(), oauth_server.MORE in refused.message) == (True, False)
    assert (server.state.refreshes, stored().demanded) == ([], oauth_server.MORE)
    # Others are answered on the same connection, and the server stays available.
    server.state.demanded = ""
    assert connected.content(TOOL, {"text": "b"}) == {"result": "kept b"}
    (needed,) = attention.load().sign_in_needed
    assert (needed.plugin.name, oauth_server.MORE in needed.error) == ("notes", True)
    assert ("sign-in-needed", "notes") in [
        (alert.event, alert.subject) for alert in events.of(attention.load())
    ]
    assert oauth_server.MORE in browser.get("/plugins/notes/").content.decode()

    server.state.demanded = oauth_server.MORE
    signed_in.sign_in(browser)
    assert {*stored().scopes.split()} == {oauth_server.SCOPE, oauth_server.MORE}
    assert stored().demanded == ""
    assert connected.content(TOOL, {"text": "c"}) == {"result": "kept c"}
    assert attention.load().sign_in_needed == []


def test_a_demand_of_scopes_that_are_none_is_an_error_like_any_other(serve: Serve) -> None:
    server = serve()
    server.state.demanded = f"{'x' * 201}"
    assert answer().code == "tool-unavailable"
    assert stored().demanded == ""


@pytest.fixture
def each_person() -> Iterator[oauth_server.Running]:
    """Run a server where each person signs in, whose tool ada has; an operator is signed in, to list it."""
    with oauth_server.running() as server:
        connected.add("notes", {"url": server.url, "sign_in": "person"})
        signed_in.sign_in(fast_fixtures.logged_in(get_user_model().objects.create_superuser("olive")))
        assert connected.refresh("notes")["notes"].error == ""
        connected.grant(TOOL)
        yield server


def test_a_person_needs_no_operators_sign_in_in_a_process_that_does_not_know_the_server(
    each_person: oauth_server.Running,
) -> None:
    mona = signed_in_for_themselves("mona")
    server_sign_ins.remove("notes")
    change(each_person)
    assert not getattr(ask(mona, "x"), "code", "")


def test_a_persons_connection_to_find_out_about_sessions_is_theirs_alone(
    each_person: oauth_server.Running,
) -> None:
    people = [signed_in_for_themselves(name) for name in ("mona", "nora")]
    clients = [*each_person.state.clients][-2:]
    change(each_person)
    for person in people:
        assert not getattr(ask(person, "x", "one session"), "code", "")
    assert each_person.state.callers == clients
    keys = {pooled.key for pooled in process_connections.pool.of("notes")}
    assert keys == {f"shared:{person.pk} " for person in people}


def change(server: oauth_server.Running) -> None:
    """Change the connection, so that what this process knows of the server's sessions is no longer true."""
    connection = {"url": server.url, "sign_in": "person", "timeout": 29}
    upstream_servers.replace_connection(connected.OPERATOR, "notes", connection)


def signed_in_for_themselves(name: str) -> Any:
    """Return a person who has signed in at the server on their page Account."""
    person = get_user_model().objects.create_superuser(name)
    came = signed_in.sign_in(fast_fixtures.logged_in(person), "notes", begin="/account/servers/{}/sign-in/")
    assert came.headers["location"] == "/account/"
    return person


def ask(person: Any, text: str, session: str = "") -> Any:
    """Call as a client that a person let act as ada."""
    call = calls.Call(key=calls.RequestKey("ada", session or None), tool=TOOL, arguments={"text": text})
    return async_to_sync(calls.answer)(call, calls.Caller(person=person.pk if person is not None else None))


def test_a_token_uses_no_ones_account(each_person: oauth_server.Running) -> None:
    refused = ask(None, "x")
    assert (refused.code, "not with a token" in refused.message) == ("sign-in-needed", True)
    assert models.CallRecord.objects.latest("id").outcome == "sign-in-needed"
    assert each_person.state.callers == []


def test_a_person_who_is_not_signed_in_uses_no_other_account(each_person: oauth_server.Running) -> None:
    mona = signed_in_for_themselves("mona")
    nora = get_user_model().objects.create_superuser("nora")
    refused = ask(nora, "x")
    assert (refused.code, "page Account" in refused.message) == ("sign-in-needed", True)
    assert not getattr(ask(mona, "y"), "code", "")
    listing = listings.find("notes")
    assert listing is not None
    assert not listing.sign_in_needed


def test_scopes_that_a_persons_call_demands_are_theirs_alone(each_person: oauth_server.Running) -> None:
    mona, nora = signed_in_for_themselves("mona"), signed_in_for_themselves("nora")
    each_person.state.demanded = oauth_server.MORE
    refused = ask(mona, "x")
    assert (refused.code, "again, on the page Account" in refused.message) == ("sign-in-needed", True)
    found = [server_sign_ins.find("notes", person) for person in (mona.pk, nora.pk, None)]
    assert [each.demanded for each in found if each is not None] == [oauth_server.MORE, "", ""]
    page = fast_fixtures.logged_in(mona).get("/account/").content.decode()
    assert oauth_server.MORE in page
    signed_in.sign_in(fast_fixtures.logged_in(mona), begin="/account/servers/{}/sign-in/")
    assert not getattr(ask(mona, "x"), "code", "")


@pytest.mark.parametrize("sharing", ["shared", "agent", "session"])
def test_calls_of_each_person_use_their_own_account(each_person: oauth_server.Running, sharing: str) -> None:
    connection = {"url": each_person.url, "sign_in": "person", "sharing": sharing}
    upstream_servers.replace_connection(connected.OPERATOR, "notes", connection)
    people = [signed_in_for_themselves(name) for name in ("mona", "nora")]
    clients = [*each_person.state.clients][-2:]
    for _ in range(2):
        for person in people:
            assert not getattr(ask(person, "x", "one session"), "code", "")
    assert each_person.state.callers == clients * 2


def test_a_person_signs_out_for_themselves_alone(each_person: oauth_server.Running) -> None:
    mona, nora = signed_in_for_themselves("mona"), signed_in_for_themselves("nora")
    fast_fixtures.logged_in(mona).post("/account/servers/notes/sign-out/")
    assert [server_sign_ins.find("notes", person.pk) is None for person in (mona, nora)] == [True, False]
    assert server_sign_ins.find("notes") is not None
