"""Tests of logging in with a provider: Authlib's OpenID Connect server on loopback, asked over real HTTP."""

from __future__ import annotations

import datetime as dt
import html
import re
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.apps import apps
from django.contrib.auth import models as auth
from django.test import Client
from django.utils import timezone
from joserfc import jwk

from tests import identity_provider
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, Provider
from tests.web.second_factors import give_password, set_up
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import password_links, roles, second_factors, users
from toolbelt.core import errors
from toolbelt.web.login import second_factor

pytestmark = pytest.mark.django_db

SETUP = writing.by("setup", via="command")
PASSWORD = "correct horse battery staple"
GROUPS = {"tools-view": "viewer", "tools-run": "operator", "tools-admin": "administrator"}
EVE = {"sub": "e-1", "preferred_username": "eve", "name": "Eve Adams", "email": "eve@example.com"}


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with identity_provider.serving_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider, settings: Any) -> Provider:
    """Return a provider that knows Eve, who may view, and is set here."""
    running.person = {**EVE, "groups": ["tools-view", "staff"]}
    running.forged, running.userinfo, running.document, running.answer = {}, {}, {}, {}
    running.rotate()
    settings.TOOLBELT_SIGN_IN_ISSUER = running.issuer
    settings.TOOLBELT_SIGN_IN_CLIENT_ID = CLIENT_ID
    settings.TOOLBELT_SIGN_IN_CLIENT_SECRET = CLIENT_SECRET
    settings.TOOLBELT_SIGN_IN_NAME = "Example ID"
    settings.TOOLBELT_SIGN_IN_ROLES = GROUPS
    return running


def log_in(browser: Client, page: str = "/login/provider/") -> Any:
    """Follow a browser to the provider and back."""
    there = browser.get(page)
    assert there.status_code == 302, there.content.decode()
    return browser.get(back(there["Location"]))


def back(address: str) -> str:
    """Return the address to which the provider sends a person back."""
    answer = httpx.get(address)
    assert answer.status_code == 302, answer.text
    return answer.headers["Location"]


def is_logged_in(browser: Client) -> bool:
    return browser.get("/account/").status_code == 200


def entries() -> list[tuple[str, str, str, str]]:
    rows = models.AuditEntry.objects.order_by("id")
    return list(rows.values_list("action", "subject_key", "actor_kind", "via"))


def refused(response: Any) -> str:
    """Return why a person was not logged in."""
    assert response.status_code in (403, 502)
    assert not response.wsgi_request.user.is_authenticated
    return str(response.context["refusal"])


def test_a_person_of_a_group_gets_an_account_with_its_role(provider: Provider, client: Client) -> None:
    response = log_in(client, "/login/provider/?next=/agents/")
    assert (response.status_code, response["Location"]) == (302, "/agents/")
    assert is_logged_in(client)
    eve = users.find("eve")
    assert (eve.roles, eve.is_given, eve.email, eve.full_name) == (
        ["viewer"],
        True,
        "eve@example.com",
        "Eve Adams",
    )
    assert not auth.User.objects.get().has_usable_password()
    assert entries() == [
        ("user.create", "eve", "clock", "system"),
        ("user.link", "eve", "clock", "system"),
        ("user.roles", "eve", "clock", "system"),
    ]


def test_pkce_state_and_nonce_are_sent_and_the_secret_is_not(provider: Provider, client: Client) -> None:
    log_in(client)
    assert provider.asked["code_challenge_method"] == "S256"
    assert {"state", "nonce", "code_challenge"} <= provider.asked.keys()
    assert set(provider.asked["scope"].split()) == {"openid", "profile", "email"}
    assert CLIENT_SECRET not in str(provider.asked)


def test_the_address_of_a_login_cannot_change_what_is_asked(provider: Provider, client: Client) -> None:
    log_in(
        client,
        "/login/provider/?scope=admin&auth_params=client_id%3Devil&process=connect&action=reauthenticate",
    )
    assert provider.asked["client_id"] == CLIENT_ID
    assert "admin" not in provider.asked["scope"]
    assert auth.User.objects.get().username == "eve"


def test_a_login_leads_to_no_other_site(provider: Provider, client: Client) -> None:
    assert log_in(client, "/login/provider/?next=https://evil.example/")["Location"] == "/"


def test_roles_are_those_of_the_groups_at_each_login(provider: Provider, client: Client) -> None:
    provider.person["groups"] = ["tools-admin", "tools-run"]
    log_in(client)
    assert roles.of_user("eve") == ("operator", "administrator")
    assert auth.User.objects.get().is_staff
    provider.person["groups"] = ["tools-run"]
    log_in(Client())
    assert roles.of_user("eve") == ("operator",)
    assert not auth.User.objects.get().is_staff


def test_a_person_without_their_last_group_loses_the_role_and_stays_out(
    provider: Provider, client: Client
) -> None:
    log_in(client)
    provider.person["groups"] = ["staff"]
    assert "has a role" in refused(log_in(Client()))
    assert roles.of_user("eve") == ()


def test_a_person_without_a_group_gets_no_account(provider: Provider, client: Client) -> None:
    del provider.person["groups"]
    refused(log_in(client))
    assert not auth.User.objects.exists()
    assert entries() == []


def test_groups_and_address_may_be_only_in_the_second_answer(provider: Provider, client: Client) -> None:
    provider.person = {"sub": "e-1", "preferred_username": "eve"}
    provider.userinfo = {"groups": ["tools-run"], "email": "eve@example.com"}
    log_in(client)
    assert (roles.of_user("eve"), users.find("eve").email) == (("operator",), "eve@example.com")


def test_a_second_answer_about_another_person_is_refused(provider: Provider, client: Client) -> None:
    del provider.person["groups"]
    provider.userinfo = {"sub": "another", "groups": ["tools-admin"]}
    refused(log_in(client))
    assert not auth.User.objects.exists()


def test_an_address_is_verified_only_where_it_is_stated(provider: Provider, client: Client) -> None:
    auth.User.objects.create_user("boss", email="boss@example.com")
    provider.person = {"sub": "e-1", "preferred_username": "eve", "email": "boss@example.com"}
    provider.userinfo = {"email": "eve@example.com", "email_verified": True, "groups": ["tools-view"]}
    assert "not verified" in refused(log_in(client))


@pytest.mark.parametrize(
    "forged",
    [
        {"aud": "another application"},
        {"aud": [CLIENT_ID, "another"], "azp": "another"},
        {"iss": "https://evil.example"},
        {"nonce": "of another login"},
        {"nonce": ""},
        {"exp": int(time.time()) - 3600},
        {"iat": int(time.time()) + 3600},
    ],
)
def test_an_id_token_for_something_else_is_refused(
    provider: Provider, client: Client, forged: dict[str, Any]
) -> None:
    provider.forged = forged
    refused(log_in(client))
    assert not auth.User.objects.exists()


def test_an_id_token_with_an_unknown_signature_is_refused(provider: Provider, client: Client) -> None:
    published = provider.key
    provider.rotate()
    provider.key.ensure_kid()
    provider.keys = [published]
    refused(log_in(client))
    assert not auth.User.objects.exists()


def test_a_forged_signature_under_a_known_key_id_is_refused(provider: Provider, client: Client) -> None:
    provider.key = jwk.RSAKey.generate_key(2048, {"kid": provider.key.kid, "use": "sig", "alg": "RS256"})
    refused(log_in(client))
    assert not auth.User.objects.exists()


def test_new_keys_of_the_provider_are_used_at_once(provider: Provider, client: Client) -> None:
    log_in(client)
    provider.rotate()
    assert log_in(Client()).status_code == 302


def test_a_provider_that_calls_itself_another_issuer_is_refused(provider: Provider, client: Client) -> None:
    provider.document = {"issuer": "https://evil.example"}
    assert client.get("/login/provider/").status_code == 502


def test_an_answer_of_another_issuer_is_refused(provider: Provider, client: Client) -> None:
    address = back(client.get("/login/provider/")["Location"])
    refused(client.get(f"{address}&iss=https%3A%2F%2Fevil.example"))


def test_an_answer_counts_once_and_in_the_browser_that_asked(provider: Provider, client: Client) -> None:
    address = back(client.get("/login/provider/")["Location"])
    assert "another browser" in refused(Client().get(address))
    assert client.get(address).status_code == 302
    client.logout()
    assert "expired" in refused(client.get(address))


def test_a_canceled_login_and_an_error_of_the_provider_lead_back(provider: Provider, client: Client) -> None:
    provider.answer = {"error": "access_denied"}
    assert "canceled" in refused(log_in(client))
    provider.answer = {"error": "server_error"}
    assert "failed" in refused(log_in(client))


def test_a_provider_that_is_down_leaves_the_local_login(
    provider: Provider, client: Client, settings: Any
) -> None:
    settings.TOOLBELT_SIGN_IN_ISSUER = "http://127.0.0.1:9"
    response = client.get("/login/provider/")
    assert response.status_code == 502
    assert 'name="password"' in response.content.decode()


def test_a_deactivated_user_stays_out_and_keeps_their_roles(provider: Provider, client: Client) -> None:
    log_in(client)
    auth.User.objects.create_superuser("root")
    users.set_active(SETUP, "eve", False)
    assert not is_logged_in(client)
    provider.person["groups"] = ["tools-admin"]
    assert "deactivated" in refused(log_in(Client()))
    assert roles.of_user("eve") == ("viewer",)


def test_a_verified_address_joins_the_account_that_has_it(provider: Provider, client: Client) -> None:
    users.create(SETUP, "adams", PASSWORD, ["administrator"], "Eve@Example.com")
    provider.person["email_verified"] = True
    log_in(client)
    assert auth.User.objects.get().username == "adams"
    assert roles.of_user("adams") == ("viewer",)


def test_an_account_that_is_joined_has_no_other_way_in(provider: Provider, client: Client) -> None:
    users.create(SETUP, "adams", PASSWORD, ["administrator"], "eve@example.com")
    password_links.make(SETUP, "adams")
    there, waiting = Client(), Client()
    give_password(there, "adams", password=PASSWORD)
    assert is_logged_in(there)
    set_up(auth.User.objects.get())
    give_password(waiting, "adams", password=PASSWORD)
    provider.person["email_verified"] = True
    log_in(client)
    assert (is_logged_in(client), is_logged_in(there)) == (True, False)
    assert not auth.User.objects.get().has_usable_password()
    between: Any = waiting.get("/login/").wsgi_request
    assert second_factor.pending(between) is None
    assert not second_factors.are_asked(auth.User.objects.get().pk)
    assert not models.PasswordLink.objects.exists()
    assert not models.Login.objects.exclude(session_key=client.session.session_key).exists()
    assert {"user.unlink", "user.factor_reset", "user.password_remove"} <= {entry[0] for entry in entries()}


def test_a_password_that_is_set_later_goes_with_the_next_login(provider: Provider, client: Client) -> None:
    log_in(client)
    users.set_password(SETUP, "eve", PASSWORD)
    there = Client()
    give_password(there, "eve", password=PASSWORD)
    assert is_logged_in(there)
    del provider.person["groups"]
    assert "has a role" in refused(log_in(client))
    assert not is_logged_in(there)
    assert not auth.User.objects.get().has_usable_password()


def test_a_superuser_keeps_the_password(provider: Provider, client: Client) -> None:
    log_in(client)
    users.set_password(SETUP, "eve", PASSWORD)
    auth.User.objects.update(is_superuser=True)
    refused(log_in(client))
    assert auth.User.objects.get().check_password(PASSWORD)


def test_an_account_that_is_joined_keeps_no_rights_but_those_of_its_groups(
    provider: Provider, client: Client
) -> None:
    users.create(SETUP, "adams", PASSWORD, ["viewer"], "eve@example.com")
    adams = auth.User.objects.get()
    extra = auth.Permission.objects.get(codename="change_agent")
    adams.user_permissions.add(extra)
    auth.User.objects.update(is_staff=True)
    support, approvers = (auth.Group.objects.create(name=name) for name in ("support", "approvers"))
    support.permissions.add(extra)
    adams.groups.add(support, approvers)
    provider.person["email_verified"] = True
    log_in(client)
    joined = auth.User.objects.get()
    assert not joined.has_perm("toolbelt.change_agent")
    assert not joined.is_staff
    assert {group.name for group in joined.groups.all()} == {"viewer", "approvers"}
    entry = models.AuditEntry.objects.get(action="user.rights")
    assert entry.before == ["toolbelt.change_agent", "group support", "the admin"]
    # What is given later goes with the next login, too.
    joined.user_permissions.add(extra)
    log_in(Client())
    assert not auth.User.objects.get().user_permissions.exists()


def test_without_roles_of_groups_an_account_keeps_its_rights(
    provider: Provider, client: Client, settings: Any
) -> None:
    settings.TOOLBELT_SIGN_IN_ROLES = {}
    users.create(SETUP, "adams", PASSWORD, ["viewer"], "eve@example.com")
    auth.User.objects.get().user_permissions.add(auth.Permission.objects.get(codename="change_agent"))
    provider.person["email_verified"] = True
    log_in(client)
    assert auth.User.objects.get().has_perm("toolbelt.change_agent")


@pytest.mark.parametrize("verified", [False, "false", None, 1])
def test_an_unverified_address_joins_no_account(provider: Provider, client: Client, verified: Any) -> None:
    users.create(SETUP, "adams", PASSWORD, ["viewer"], "eve@example.com")
    provider.person["email_verified"] = verified
    assert "not verified" in refused(log_in(client))
    assert auth.User.objects.get().username == "adams"


def test_who_became_a_superuser_is_logged_in_by_password_only(provider: Provider, client: Client) -> None:
    log_in(client)
    auth.User.objects.filter(username="eve").update(is_superuser=True)
    assert "superuser" in refused(log_in(Client()))


def test_a_superuser_is_joined_by_no_address(provider: Provider, client: Client) -> None:
    auth.User.objects.create_superuser("root", "eve@example.com")
    provider.person["email_verified"] = True
    assert "superuser" in refused(log_in(client))


def test_an_address_that_another_identity_has_joined_is_not_joined_again(
    provider: Provider, client: Client
) -> None:
    provider.person["email_verified"] = True
    log_in(client)
    provider.person["sub"] = "e-2"
    assert "another identity" in refused(log_in(Client()))


def test_a_name_that_is_taken_is_not_taken_over(provider: Provider, client: Client) -> None:
    auth.User.objects.create_user("eve")
    assert "There can be no account eve" in refused(log_in(client))


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("EVE", "eve"),
        ("\N{CYRILLIC SMALL LETTER IE}ve", "eve"),
        ("\N{FULLWIDTH LATIN SMALL LETTER E}ve", "eve"),
        ("\N{GREEK CAPITAL LETTER ALPHA}da", "ada"),
        ("\N{CYRILLIC CAPITAL LETTER WE}ill", "will"),
        ("\N{CYRILLIC SMALL LETTER EN}al", "\N{CYRILLIC CAPITAL LETTER EN}AL"),
        ("o\N{CYRILLIC SMALL LETTER PALOCHKA}ive", "olive"),
        ("O\N{CYRILLIC LETTER PALOCHKA}IVE", "olive"),
        ("\N{CYRILLIC CAPITAL LETTER STRAIGHT U}ann", "yann"),
        ("\N{CYRILLIC SMALL LETTER IZHITSA}era", "vera"),
        ("\N{CYRILLIC CAPITAL LETTER KOMI SJE}ina", "gina"),
        ("stra\N{LATIN SMALL LETTER SHARP S}e", "STRASSE"),
        ("system", ""),
        ("Toolb\N{CYRILLIC SMALL LETTER IE}lt", ""),
        ("GitHub", ""),
    ],
)
def test_a_name_that_the_audit_log_could_take_for_another_is_refused(
    provider: Provider, client: Client, name: str, taken: str
) -> None:
    models.Plugin.objects.create(name="github")
    if taken:
        auth.User.objects.create_user(taken)
    provider.person["preferred_username"] = name
    assert "There can be no account" in refused(log_in(client))
    assert auth.User.objects.count() == bool(taken)


def test_a_name_in_other_letters_is_one_of_its_own_in_their_common_form(
    provider: Provider, client: Client
) -> None:
    auth.User.objects.create_user("eve")
    provider.person["preferred_username"] = "Zo\N{LATIN SMALL LETTER E}\N{COMBINING DIAERESIS}"
    log_in(client)
    assert users.find("Zo\N{LATIN SMALL LETTER E WITH DIAERESIS}").roles == ["viewer"]


def test_the_same_subject_of_another_issuer_is_another_person(
    provider: Provider, client: Client, settings: Any
) -> None:
    log_in(client)
    with identity_provider.serving_provider() as another:
        settings.TOOLBELT_SIGN_IN_ISSUER = another.issuer
        another.person = {**EVE, "preferred_username": "mallory", "email": "", "groups": ["tools-admin"]}
        log_in(Client())
    assert roles.of_user("eve") == ("viewer",)
    assert roles.of_user("mallory") == ("administrator",)


def test_without_roles_of_groups_only_people_with_an_account_log_in(
    provider: Provider, client: Client, settings: Any
) -> None:
    settings.TOOLBELT_SIGN_IN_ROLES = {}
    provider.person["email_verified"] = True
    assert "no account" in refused(log_in(client))
    users.create(SETUP, "adams", "", ["operator"], "eve@example.com")
    log_in(client)
    assert is_logged_in(client)
    assert roles.of_user("adams") == ("operator",)
    assert not users.find("adams").is_given


def test_roles_that_the_provider_gives_are_not_changed_here(provider: Provider, client: Client) -> None:
    log_in(client)
    with pytest.raises(errors.Refused, match="Example ID gives the roles of eve"):
        roles.assign(SETUP, "eve", "operator")
    assert roles.of_user("eve") == ("viewer",)


def test_the_last_administrator_loses_the_role_with_the_group(provider: Provider, client: Client) -> None:
    provider.person["groups"] = ["tools-admin"]
    log_in(client)
    provider.person["groups"] = ["tools-view"]
    log_in(Client())
    assert roles.of_user("eve") == ("viewer",)


def test_pages_show_where_roles_come_from(provider: Provider, client: Client) -> None:
    log_in(client)
    assert "given by Example ID" in client.get("/account/").content.decode()
    root = Client()
    root.force_login(auth.User.objects.create_superuser("root"))
    users.create(SETUP, "adams", PASSWORD, ["viewer"])
    page = root.get("/people/").content.decode()
    assert "given by Example ID" in page
    assert "Given here" in page
    assert "/people/adams/roles/" in page
    assert "/people/eve/roles/" not in page


def test_a_login_ends_within_a_day_and_with_the_setting(
    provider: Provider, client: Client, settings: Any
) -> None:
    log_in(client)
    client.post("/account/density/", {"density": "compact"})
    eleven_hours_later = timezone.now() + dt.timedelta(hours=11)
    assert client.session.get_expiry_age(modification=eleven_hours_later) <= 3600
    settings.TOOLBELT_SIGN_IN_ISSUER = ""
    assert not is_logged_in(client)


def test_nothing_that_the_provider_says_is_stored_or_shown(provider: Provider, client: Client) -> None:
    provider.person["phone_number"] = "555-0100"
    log_in(client)
    stored = [dict(row) for model in tables() for row in model._default_manager.values()]
    assert "555-0100" not in str(stored)
    assert "tools-view" not in str(stored)
    assert not any(token in str(stored) for token in provider.tokens)


def tables() -> list[Any]:
    return [*apps.all_models["socialaccount"].values(), models.AuditEntry]


def test_only_superusers_log_in_with_a_password_if_so_set(
    provider: Provider, client: Client, settings: Any
) -> None:
    users.create(SETUP, "adams", PASSWORD, ["administrator"])
    auth.User.objects.create_superuser("root", password=PASSWORD)
    settings.TOOLBELT_LOCAL_LOGIN = "superusers"
    settings.AUTHENTICATION_BACKENDS = [
        "axes.backends.AxesStandaloneBackend",
        "toolbelt.web.login.backends.SuperusersBackend",
        "toolbelt.web.login.backends.ProviderBackend",
    ]
    answers = [
        Client().post("/login/", {"username": name, "password": PASSWORD}).status_code
        for name in ("adams", "root")
    ]
    assert answers == [200, 302]
    assert log_in(client).status_code == 302
    assert "Only superusers log in with a password" in Client().get("/login/").content.decode()


def test_logging_in_with_the_provider_again_confirms_who_one_is(
    provider: Provider, client: Client, belt: None
) -> None:
    provider.person["groups"] = ["tools-admin"]
    auth.User.objects.create_user("olive", password=PASSWORD)
    log_in(client)
    make = "/people/olive/password-link/"
    assert client.post(make).status_code == 200
    session = client.session
    session["toolbelt.confirmed"] -= 601
    session.save()
    response = client.post(make, {"confirm": "yes"})
    assert (response.status_code, models.PasswordLink.objects.count()) == (303, 0)
    page = client.get(response.headers["Location"]).content.decode()
    assert 'name="password"' not in page
    assert client.post("/account/confirm/", {"password": PASSWORD}).status_code == 403
    [there] = re.findall(r'href="(/login/provider/[^"]*)"', page)
    assert log_in(client, html.unescape(there)).headers["Location"] == "/people/"
    client.post(make, {"confirm": "yes"})
    assert models.PasswordLink.objects.count() == 1


def test_the_login_page_leads_to_the_provider_and_back_to_the_page(
    provider: Provider, client: Client
) -> None:
    page = client.get("/login/?next=/agents/%3Fq=a").content.decode()
    assert "Log in with Example ID" in page
    assert urllib.parse.quote("/agents/?q=a", safe="") in page


def test_without_a_provider_there_is_none_of_its_pages(client: Client) -> None:
    assert client.get("/login/provider/").status_code == 404
    assert client.get("/login/provider/callback/?code=1&state=2").status_code == 404
    assert "Log in with" not in client.get("/login/").content.decode()


@pytest.mark.parametrize(
    "path", ["accounts/", "3rdparty/", "signup/", "email/", "login/signup/", "oidc/provider/login/"]
)
def test_none_of_the_librarys_own_pages_can_be_reached(provider: Provider, client: Client, path: str) -> None:
    assert client.get(f"/{path}").status_code == 404
