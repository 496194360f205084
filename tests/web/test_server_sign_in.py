"""Tests of signing in at a server in the dashboard: the way there and back, and what is shown of it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from cryptography.fernet import Fernet
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.test import Client

from tests import fast_fixtures, signed_in
from tests.plugins.upstream import oauth_server
from tests.web import dashboard
from toolbelt import models
from toolbelt.control.servers import sign_ins, upstream_servers
from toolbelt.core import connections
from toolbelt.core.imported import importing
from toolbelt.runtime.upstream import server_lists
from toolbelt.store import clock, server_sign_ins, snapshots

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Iterator[oauth_server.Running]:
    with oauth_server.running() as running:
        yield running


@pytest.fixture(autouse=True)
def with_a_key(settings: Any) -> None:
    settings.TOOLBELT_ENCRYPTION_KEYS = [signed_in.KEY]


@pytest.fixture(autouse=True)
def requested_refreshes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    refreshes: list[str] = []
    monkeypatch.setattr(server_lists, "refresh_soon", lambda names, record: refreshes.extend(names))
    return refreshes


def stored() -> models.ServerSignIn | None:
    return models.ServerSignIn.objects.first()


def notice(browser: Client, response: Any) -> str:
    """Return the notice of the page to which a response leads."""
    assert response.status_code == 303
    return str(browser.get(response.headers["location"]).context["page"].notice.text)


def test_a_server_is_signed_in_to_knowing_only_its_address(
    plugin_manager: Client, belt: None, server: oauth_server.Running, requested_refreshes: list[str]
) -> None:
    signed_in.add(server)
    answer = signed_in.sign_in(plugin_manager)
    assert answer.headers["location"].startswith("/plugins/notes/?asked=")
    assert "Signed in at notes" in notice(plugin_manager, answer)
    assert requested_refreshes == ["notes"]
    settings = connections.read(snapshots.catalog().plugins["notes"].upstream)
    assert settings is not None
    assert settings.sign_in == "shared"
    assert [(entry.action, entry.actor) for entry in models.AuditEntry.objects.order_by("id")][-2:] == [
        ("plugin.change", "kim"),
        ("sign_in.begin", "kim"),
    ]


def test_the_person_sees_where_they_are_sent_and_what_is_asked_for(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    page = plugin_manager.post("/plugins/notes/sign-in/").context["page"]
    assert (page.host, page.scopes) == (server.issuer.removeprefix("http://"), [oauth_server.SCOPE])
    assert page.others == []


def test_the_person_sees_which_other_addresses_get_the_answer(
    plugin_manager: Client, belt: None, server: oauth_server.Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in.add(server)
    begin = sign_ins.begin

    def mixed_up(*args: Any, **options: Any) -> sign_ins.Begun:
        return dataclasses.replace(begin(*args, **options), url="https://bank.example/authorize")

    monkeypatch.setattr(sign_ins, "begin", mixed_up)
    answer = plugin_manager.post("/plugins/notes/sign-in/")
    (other,) = answer.context["page"].others
    assert other == server.issuer.removeprefix("http://")
    assert other in dashboard.text(answer)


def test_without_an_encryption_key_a_sign_in_is_refused_and_the_setting_named(
    plugin_manager: Client, belt: None, server: oauth_server.Running, settings: Any
) -> None:
    settings.TOOLBELT_ENCRYPTION_KEYS = []
    signed_in.add(server)
    refused = plugin_manager.post("/plugins/notes/sign-in/")
    assert "TOOLBELT_ENCRYPTION_KEYS" in notice(plugin_manager, refused)
    assert server.state.registrations == 0


@pytest.mark.parametrize(
    "changes",
    [{"state": "forged"}, {"state": ""}, {"iss": "https://evil.example"}, {"code": "forged"}, {"code": ""}],
    ids=str,
)
def test_a_forged_way_back_stores_nothing(
    plugin_manager: Client, belt: None, server: oauth_server.Running, changes: dict[str, str]
) -> None:
    signed_in.add(server)
    back = signed_in.consent(signed_in.begin(plugin_manager))
    assert "Not signed in" in notice(plugin_manager, plugin_manager.get("/signed-in/", back | changes))
    assert stored() is None


def test_a_way_back_is_used_once(plugin_manager: Client, belt: None, server: oauth_server.Running) -> None:
    signed_in.add(server)
    back = signed_in.consent(signed_in.begin(plugin_manager))
    plugin_manager.get("/signed-in/", back)
    models.ServerSignIn.objects.all().delete()
    before = server.state.token_requests
    assert "Not signed in" in notice(plugin_manager, plugin_manager.get("/signed-in/", back))
    assert (stored(), server.state.token_requests) == (None, before)


def test_a_wrong_issuer_uses_the_way_back_up(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    back = signed_in.consent(signed_in.begin(plugin_manager))
    plugin_manager.get("/signed-in/", back | {"iss": "https://evil.example"})
    plugin_manager.get("/signed-in/", back)
    assert (stored(), server.state.token_requests) == (None, 0)


def test_a_way_back_expires(plugin_manager: Client, belt: None, server: oauth_server.Running) -> None:
    signed_in.add(server)
    back = signed_in.consent(signed_in.begin(plugin_manager))
    with clock.stopped(clock.now() + server_sign_ins.BEGUN + dt.timedelta(seconds=1)):
        assert "Not signed in" in notice(plugin_manager, plugin_manager.get("/signed-in/", back))
    assert stored() is None


def test_a_way_back_is_of_the_login_that_began_it(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    back = signed_in.consent(signed_in.begin(plugin_manager))
    kim = get_user_model().objects.get(username="kim")
    other = fast_fixtures.logged_in(get_user_model().objects.create_superuser("mallory"))
    for browser in (other, fast_fixtures.logged_in(kim)):
        assert "Not signed in" in notice(browser, browser.get("/signed-in/", back))
    assert stored() is None
    assert plugin_manager.get("/signed-in/", back).status_code == 303
    assert stored() is not None


def test_who_signs_in_for_themselves_does_not_change_the_connection(
    belt: None, server: oauth_server.Running
) -> None:
    browser = fast_fixtures.logged_in(get_user_model().objects.create_superuser("eve"))
    signed_in.add(server)
    upstream_servers.replace_connection(signed_in.SHELL, "notes", {"url": server.url, "sign_in": "person"})
    back = signed_in.consent(signed_in.begin(browser, address="/account/servers/{}/sign-in/"))
    upstream_servers.replace_connection(signed_in.SHELL, "notes", {"url": server.url})
    assert "Not signed in" in notice(browser, browser.get("/signed-in/", back))
    assert "sign_in" not in json.loads(snapshots.catalog().plugins["notes"].upstream)


def test_a_server_whose_address_was_changed_meanwhile_gets_no_tokens(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    back = signed_in.consent(signed_in.begin(plugin_manager))
    upstream_servers.replace_connection(signed_in.SHELL, "notes", {"url": "https://other.example/mcp"})
    assert "address of notes was changed" in notice(plugin_manager, plugin_manager.get("/signed-in/", back))
    assert stored() is None


def our_client(server: oauth_server.Running) -> dict[str, str]:
    """Register a client there, as an operator does on its pages, and return the fields of a connection."""
    answer = httpx.post(
        f"{server.issuer}/register",
        json={
            "redirect_uris": ["http://testserver/signed-in/"],
            "token_endpoint_auth_method": "none",
            "scope": oauth_server.SCOPE,
        },
    )
    return {"client_id": answer.json()["client_id"]}


def test_a_client_that_an_operator_gave_is_for_the_authorization_server_that_they_saw(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    ours = our_client(server)
    signed_in.add(server, **ours)
    assert plugin_manager.post("/plugins/notes/sign-in/").context["page"].confirms
    signed_in.sign_in(plugin_manager)
    settings = connections.read(snapshots.catalog().plugins["notes"].upstream)
    assert settings is not None
    assert settings.issuer.rstrip("/") == server.issuer
    with oauth_server.running() as other:
        moved = {"url": other.url, "sign_in": "shared", **ours, "issuer": settings.issuer}
        upstream_servers.replace_connection(signed_in.SHELL, "notes", moved)
        said = notice(plugin_manager, plugin_manager.post("/plugins/notes/sign-in/"))
        assert (other.issuer in said, server.issuer in said) == (True, True)
        # An operator confirms it anew, with what they registered there.
        confirmed = {**moved, **our_client(other), "issuer": other.issuer}
        upstream_servers.replace_connection(signed_in.SHELL, "notes", confirmed)
        assert "Signed in" in notice(plugin_manager, signed_in.sign_in(plugin_manager))


def test_a_client_is_not_confirmed_by_who_signs_in_for_themselves(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server, **our_client(server), sign_in="person")
    browser = fast_fixtures.logged_in(get_user_model().objects.create_superuser("eve"))
    refused = browser.post("/account/servers/notes/sign-in/")
    assert "not confirmed" in notice(browser, refused)
    signed_in.sign_in(plugin_manager)
    assert "Signed in" in notice(browser, signed_in.sign_in(browser, begin="/account/servers/{}/sign-in/"))


@pytest.mark.parametrize("address", [signed_in.BEGIN, "/account/servers/{}/sign-in/"])
def test_a_client_that_is_given_meanwhile_is_not_confirmed(
    plugin_manager: Client, belt: None, server: oauth_server.Running, address: str
) -> None:
    signed_in.add(server, sign_in="person")
    manager = get_user_model().objects.get()
    manager.user_permissions.add(auth.Permission.objects.get(codename="add_clientconnection"))
    back = signed_in.consent(signed_in.begin(plugin_manager, address=address))
    given = {"url": server.url, "sign_in": "person", "client_id": "ours"}
    upstream_servers.replace_connection(signed_in.SHELL, "notes", given)
    said = notice(plugin_manager, plugin_manager.get("/signed-in/", back))
    assert "client id of notes was changed meanwhile" in said
    settings = connections.read(snapshots.catalog().plugins["notes"].upstream)
    assert settings is not None
    assert settings.issuer == ""
    assert stored() is None


def test_who_signs_in_for_themselves_confirms_nothing_that_was_given_meanwhile(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    ours = our_client(server)
    given = {"url": server.url, "sign_in": "person", **ours}
    signed_in.add(server, **given, issuer=server.issuer)
    browser = fast_fixtures.logged_in(get_user_model().objects.create_superuser("eve"))
    back = signed_in.consent(signed_in.begin(browser, address="/account/servers/{}/sign-in/"))
    upstream_servers.replace_connection(signed_in.SHELL, "notes", given)
    browser.get("/signed-in/", back)
    settings = connections.read(snapshots.catalog().plugins["notes"].upstream)
    assert settings is not None
    assert settings.issuer == ""


def test_an_authorization_server_that_was_changed_meanwhile_stores_nothing(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    back = signed_in.consent(signed_in.begin(plugin_manager))
    changed = {"url": server.url, "issuer": "https://other.example"}
    upstream_servers.replace_connection(signed_in.SHELL, "notes", changed)
    assert "changed meanwhile" in notice(plugin_manager, plugin_manager.get("/signed-in/", back))
    assert stored() is None


def test_signing_in_again_ends_the_grant_before(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    signed_in.sign_in(plugin_manager)
    before = {*server.state.access, *server.state.refresh}
    signed_in.sign_in(plugin_manager)
    assert not before & {*server.state.access, *server.state.refresh}
    assert (len(server.state.access), len(server.state.refresh)) == (1, 1)


def test_signing_in_again_with_the_same_client_does_not_end_what_the_person_allowed_it(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server, **our_client(server))
    signed_in.sign_in(plugin_manager)
    signed_in.sign_in(plugin_manager)
    assert len(server.state.refresh) == 2


def test_a_client_of_the_same_name_at_another_authorization_server_is_another_one(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    ours = our_client(server)
    signed_in.add(server, **ours)
    signed_in.sign_in(plugin_manager)
    with oauth_server.running() as other:
        other.state.clients.update(server.state.clients)
        moved = {"url": other.url, "sign_in": "shared", **ours, "issuer": other.issuer}
        upstream_servers.replace_connection(signed_in.SHELL, "notes", moved)
        signed_in.sign_in(plugin_manager)
        assert (len(server.state.refresh), len(other.state.refresh)) == (0, 1)


def test_signing_in_again_succeeds_although_the_grant_before_cannot_be_ended(
    plugin_manager: Client, belt: None, server: oauth_server.Running, settings: Any
) -> None:
    signed_in.add(server)
    signed_in.sign_in(plugin_manager)
    server.state.refuses_revocation = True
    assert "Signed in" in notice(plugin_manager, signed_in.sign_in(plugin_manager))
    settings.TOOLBELT_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    assert "Signed in" in notice(plugin_manager, signed_in.sign_in(plugin_manager))


def test_what_the_authorization_server_says_is_shown(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    server.state.authorize_error = "access_denied"
    signed_in.add(server)
    assert "access_denied" in notice(plugin_manager, signed_in.sign_in(plugin_manager))


def test_signing_out_ends_the_grant_and_is_recorded_without_tokens(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    signed_in.sign_in(plugin_manager)
    assert server.state.refresh
    plugin_manager.post("/plugins/notes/sign-out/")
    assert stored() is None
    assert not (server.state.refresh)
    assert not (server.state.access)
    entry = models.AuditEntry.objects.latest("id")
    assert (entry.action, entry.subject_key) == ("sign_in.end", "notes")
    logged = " ".join(map(repr, models.AuditEntry.objects.values_list("before", "after", "reason")))
    assert not [token for token in server.state.issued if token in logged]


def test_the_page_shows_who_is_signed_in_and_what_to_do_if_no_one_is(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    upstream_servers.record(
        signed_in.SHELL, "notes", importing.ServerListing(error="HTTP 401", sign_in_needed=True)
    )
    page = plugin_manager.get("/plugins/notes/").context["page"]
    assert (page.plugin.state.word, page.sign_in.is_needed) == ("Unavailable: sign-in needed", True)
    assert snapshots.catalog().plugins["notes"].status != "failed"
    signed_in.sign_in(plugin_manager)
    upstream_servers.record(signed_in.SHELL, "notes", importing.ServerListing())
    part = plugin_manager.get("/plugins/notes/").context["page"].sign_in
    assert (part.found.signed_in_by, part.is_needed) == ("kim", False)


def test_review_lists_a_server_that_needs_a_sign_in(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server)
    upstream_servers.record(
        signed_in.SHELL, "notes", importing.ServerListing(error="HTTP 401", sign_in_needed=True)
    )
    assert "notes needs a sign-in" in dashboard.text(plugin_manager.get("/"))


def test_no_one_signs_in_at_a_server_with_a_key_or_a_command(
    plugin_manager: Client, belt: None, server: oauth_server.Running
) -> None:
    signed_in.add(server, headers={"Authorization": "Bearer ${MCP_KEY}"})
    upstream_servers.add(signed_in.SHELL, "git", {"command": "mcp-server-git"})
    for name in ("notes", "git"):
        refused = plugin_manager.post(f"/plugins/{name}/sign-in/")
        assert "Not signed in" in notice(plugin_manager, refused)
