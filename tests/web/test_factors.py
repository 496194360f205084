"""Tests of setting up and removing second factors, by their owner and by an administrator."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from allauth.mfa import models as mfa
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth import models as auth
from django.core.cache import cache
from django.test import Client
from fido2 import cbor

from tests import fast_fixtures
from tests.web import dashboard
from tests.web.second_factors import PASSWORD, code, give_code, give_password, is_logged_in, set_up
from tests.web.second_factors import confirmed as just_confirmed
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import roles, second_factors
from toolbelt.web.login import second_factor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

HOME = "/account/#second-factor"
PAGES = ("/account/app/", "/account/passkeys/")


def confirm(browser: Client, **sent: str) -> Any:
    return browser.post("/account/confirm/", sent or {"password": PASSWORD})


@pytest.fixture
def confirmed(operator: Client) -> Client:
    """Return a browser whose person has just confirmed who they are."""
    assert confirm(operator).status_code == 303
    return operator


def begin(browser: Client) -> tuple[str, str]:
    """Open the page that sets an app up; return the signed field, and the secret that it shows."""
    page = browser.get("/account/app/").context["page"]
    return page.form["setup"].value(), page.secret.replace(" ", "")


def actions() -> list[str]:
    return list(models.AuditEntry.objects.order_by("id").values_list("action", flat=True))


def test_an_app_is_set_up_with_its_first_code_and_shows_recovery_codes_once(
    confirmed: Client, olive: auth.User
) -> None:
    setup, secret = begin(confirmed)
    response = confirmed.post("/account/app/", {"setup": setup, "code": code(secret, -1)})
    codes = [each.replace(" ", "") for each in response.context["page"].codes]
    assert (response.status_code, len(codes)) == (200, 10)
    assert not [each for each in codes if each in dashboard.text(confirmed.get("/account/"))]
    assert actions() == ["user.factor_add"]
    other = Client()
    give_password(other)
    assert not is_logged_in(other)
    assert give_code(other, code(secret)).status_code == 302


def test_the_page_draws_what_apps_scan(confirmed: Client) -> None:
    response = confirmed.get("/account/app/")
    page = response.context["page"]
    secret = page.secret.replace(" ", "")
    assert page.address == f"otpauth://totp/olive?secret={secret}&issuer=Toolbelt"
    assert "<svg" in response.content.decode()
    assert response.headers["Cache-Control"].count("no-store") == 1


@pytest.mark.parametrize("wrong", ["000000", "", "abc"])
def test_an_app_that_shows_another_code_is_not_set_up(
    confirmed: Client, olive: auth.User, wrong: str
) -> None:
    setup, secret = begin(confirmed)
    response = confirmed.post("/account/app/", {"setup": setup, "code": wrong})
    assert response.status_code == 422
    assert response.context["page"].form.errors["code"]
    assert response.context["page"].secret.replace(" ", "") == secret
    assert not second_factors.are_asked(olive.pk)
    assert actions() == []


def test_a_secret_that_another_person_or_no_one_was_shown_is_refused(
    confirmed: Client, olive: auth.User
) -> None:
    sam = auth.User.objects.create_user("sam", password=PASSWORD)
    other = fast_fixtures.logged_in(sam)
    confirm(other)
    setup, secret = begin(other)
    for forged in (setup, "x", f"{setup}x", ""):
        response = confirmed.post("/account/app/", {"setup": forged, "code": code(secret)})
        assert (response.status_code, response.headers["Location"]) == (303, "/account/app/")
    assert not second_factors.are_asked(olive.pk)


def test_there_is_one_app(confirmed: Client, olive: auth.User) -> None:
    setup, secret = begin(confirmed)
    set_up(olive)
    assert confirmed.post("/account/app/", {"setup": setup, "code": code(secret)}).status_code == 422
    assert confirmed.get("/account/app/").headers["Location"] == HOME


@pytest.mark.parametrize(
    ("method", "page"),
    [
        *(("get", page) for page in PAGES),
        *(("post", page) for page in PAGES),
        ("post", "/account/factors/1/remove/"),
        ("post", "/account/factors/1/rename/"),
        ("post", "/account/recovery-codes/"),
    ],
)
def test_nothing_is_changed_without_confirming_who_one_is(
    operator: Client, olive: auth.User, method: str, page: str
) -> None:
    set_up(olive)
    response = getattr(operator, method)(page)
    wanted = page if method == "get" else HOME
    assert (response.status_code, response.headers["Location"].split("?")[0]) == (303, "/account/confirm/")
    assert wanted.split("#")[0] in response.headers["Location"].replace("%2F", "/")
    assert second_factors.of_user(olive.pk).app is not None


def test_a_login_confirms_who_one_is_for_ten_minutes(client: Client, olive: auth.User) -> None:
    give_password(client)
    assert client.get("/account/app/").status_code == 200
    session = client.session
    session["toolbelt.confirmed"] -= 601
    session.save()
    assert client.get("/account/app/").status_code == 303


@pytest.mark.parametrize("sent", [{"password": "wrong"}, {"code": "000000"}, {}, {"credential": "{}"}])
def test_a_wrong_confirmation_confirms_nothing(
    operator: Client, olive: auth.User, sent: dict[str, str]
) -> None:
    set_up(olive)
    response = operator.post("/account/confirm/", sent)
    assert response.status_code == 422
    assert operator.get("/account/app/").headers["Location"].startswith("/account/confirm/")


def test_a_code_of_the_app_confirms_who_one_is(operator: Client, olive: auth.User) -> None:
    secret, _ = set_up(olive)
    cache.clear()
    response = operator.post("/account/confirm/", {"code": code(secret), "next": "/account/passkeys/"})
    assert (response.status_code, response.headers["Location"]) == (303, "/account/passkeys/")
    assert operator.get("/account/passkeys/").status_code == 200


def test_a_confirmation_leads_to_no_other_site(operator: Client) -> None:
    response = operator.post("/account/confirm/", {"password": PASSWORD, "next": "https://evil.example/"})
    assert response.headers["Location"] == HOME


def test_guesses_at_a_confirmation_are_limited(operator: Client, olive: auth.User, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    set_up(olive)
    for field in ("password", "code"):
        statuses = [operator.post("/account/confirm/", {field: "000000"}).status_code for _ in range(4)]
        assert statuses == [422, 422, 429, 429]


@pytest.mark.parametrize("field", ["password", "code"])
def test_a_stolen_session_locks_no_one_out(
    operator: Client, olive: auth.User, settings: Any, field: str
) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    _, codes = set_up(olive)
    statuses = [operator.post("/account/confirm/", {field: "000000"}).status_code for _ in range(4)]
    assert statuses == [422, 422, 429, 429]
    owner = Client()
    give_password(owner)
    assert give_code(owner, codes[0]).status_code == 302


def test_new_recovery_codes_replace_the_old_ones(confirmed: Client, olive: auth.User) -> None:
    _, old = set_up(olive)
    response = confirmed.post("/account/recovery-codes/")
    new = [each.replace(" ", "") for each in response.context["page"].codes]
    assert not {*old} & {*new}
    other = Client()
    give_password(other)
    assert give_code(other, old[0]).status_code == 200
    assert give_code(other, new[0]).status_code == 302


def test_recovery_codes_alone_are_no_second_factor(confirmed: Client, olive: auth.User) -> None:
    assert confirmed.post("/account/recovery-codes/").status_code == 303
    assert second_factors.of_user(olive.pk) == second_factors.Factors()


def test_removing_the_last_factor_is_confirmed_and_removes_the_recovery_codes(
    confirmed: Client, olive: auth.User
) -> None:
    set_up(olive)
    app = second_factors.of_user(olive.pk).app
    assert app is not None
    address = f"/account/factors/{app.id}/remove/"
    asked = confirmed.post(address)
    assert "your password alone" in dashboard.text(asked)
    assert second_factors.are_asked(olive.pk)
    assert confirmed.post(address, {"confirm": "yes"}).status_code == 303
    assert second_factors.of_user(olive.pk) == second_factors.Factors()
    assert actions()[-1] == "user.factor_remove"


@pytest.mark.parametrize("act", ["remove", "rename"])
def test_another_persons_factor_is_not_found(confirmed: Client, act: str) -> None:
    sam = auth.User.objects.create_user("sam")
    set_up(sam)
    app = second_factors.of_user(sam.pk).app
    assert app is not None
    address = f"/account/factors/{app.id}/{act}/"
    for sent in ({}, {"confirm": "yes", "name": "x"}):
        confirmed.post(address, sent)
        notice = confirmed.get("/account/").context["page"].notice
        assert notice.tone == "refused"
    assert second_factors.of_user(sam.pk).app == app


def text64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


CLIENT_DATA = b'{"type": "webauthn.get", "challenge": "AAAA", "origin": "https://testserver"}'


def hostile(client_data: bytes = CLIENT_DATA, cbor: bytes = b"\0") -> str:
    """Return what a device could send, with this client data, and with this CBOR as extensions and attestation."""
    sent = {
        "clientDataJSON": text64(client_data),
        "authenticatorData": text64(bytes(32) + b"\x85" + bytes(4) + cbor),
        "attestationObject": text64(cbor),
        "signature": "AAAA",
        "userHandle": "MQ",
    }
    return json.dumps({"id": "AAAA", "rawId": "AAAA", "type": "public-key", "response": sent})


HOSTILE = (
    "",
    "x",
    "[]",
    "1",
    "null",
    "{}",
    "[" * 100_000,
    json.dumps({"id": 1, "rawId": [], "response": {}}),
    json.dumps({"id": "x", "rawId": "x", "type": "public-key", "response": []}),
    json.dumps(
        {
            "id": "AAAA",
            "rawId": "AAAA",
            "type": "public-key",
            "response": {"clientDataJSON": "AAAA", "attestationObject": "AAAA"},
        }
    ),
    json.dumps(
        {
            "id": "AAAA",
            "rawId": "AAAA",
            "type": "public-key",
            "response": {
                "clientDataJSON": "e30",
                "authenticatorData": "A" * 60,
                "signature": "AAAA",
                "userHandle": "MQ",
            },
        }
    ),
    hostile(client_data=b"[" * 100_000),
    hostile(client_data=b'{"type": "webauthn.get", "challenge": "AAAA", "origin": "https://["}'),
    hostile(cbor=b"\x81" * 3000 + b"\0"),
    hostile(cbor=b"\xa1" * 3000),
    hostile(cbor=b"\x5b\x7f" + b"\xff" * 7),
    hostile(cbor=b"\xf9\0\0"),
)


@pytest.mark.parametrize("sent", HOSTILE)
def test_what_no_browser_sends_is_no_passkey(
    confirmed: Client, client: Client, olive: auth.User, sent: str
) -> None:
    confirmed.get("/account/passkeys/")
    assert confirmed.post("/account/passkeys/", {"credential": sent, "name": "x"}).status_code == 422
    client.get("/login/passkey/")
    response = client.post("/login/passkey/", {"credential": sent})
    assert response.status_code == 403
    assert not is_logged_in(client)
    assert not second_factors.are_asked(olive.pk)


def registration(browser: Client, **more: Any) -> dict[str, Any]:
    """Return what a device answers that makes a passkey as the page asks it to, with more fields."""
    asked = json.loads(browser.get("/account/passkeys/").context["page"].asked)["publicKey"]
    numbers = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    key = {
        1: 2,
        3: -7,
        -1: 1,
        -2: numbers.x.to_bytes(32, "big"),
        -3: numbers.y.to_bytes(32, "big"),
    }
    said = {"type": "webauthn.create", "challenge": asked["challenge"], "origin": "https://testserver"}
    made = hashlib.sha256(b"testserver").digest() + b"\x45" + bytes(20) + b"\0\x03key" + cbor.encode(key)
    response = {
        "clientDataJSON": text64(json.dumps(said).encode()),
        "attestationObject": text64(cbor.encode({"fmt": "none", "attStmt": {}, "authData": made})),
    }
    name = text64(b"key")
    return {"id": name, "rawId": name, "type": "public-key", "response": response, **more}


def test_of_a_passkey_only_what_is_read_later_is_stored(confirmed: Client) -> None:
    sent = registration(
        confirmed,
        more="\0",
        clientExtensionResults={"credProps": {"rk": True, "more": "\0"}, "more": "\0"},
    )
    expected = {**sent, "clientExtensionResults": {"credProps": {"rk": True}}}
    del expected["more"]
    sent["response"] = {**sent["response"], "more": "\0"}
    answer = confirmed.post("/account/passkeys/", {"credential": json.dumps(sent), "name": "Laptop"})
    assert answer.status_code == 200
    assert mfa.Authenticator.objects.get(type="webauthn").data == {
        "name": "Laptop",
        "credential": expected,
    }


@pytest.mark.parametrize("name", ["rawId", "clientDataJSON", "attestationObject"])
def test_a_passkey_with_a_nul_is_refused(confirmed: Client, olive: auth.User, name: str) -> None:
    sent = registration(confirmed)
    part = sent if name == "rawId" else sent["response"]
    part[name] += "\0"
    answer = confirmed.post("/account/passkeys/", {"credential": json.dumps(sent), "name": "Laptop"})
    # By the library, if its decoder notices: that depends on the length.
    assert answer.status_code in (303, 422)
    assert not second_factors.are_asked(olive.pk)


def test_people_who_log_in_elsewhere_have_no_second_factor_here(operator: Client, olive: auth.User) -> None:
    olive.set_unusable_password()
    olive.save()
    operator.force_login(olive)
    assert "web:add_app" not in dashboard.text(operator.get("/account/"))
    assert operator.get("/account/app/").status_code == 403
    assert operator.get("/account/confirm/").status_code == 403


def test_an_administrator_resets_the_second_factor_of_a_person_who_lost_it(
    client: Client, olive: auth.User
) -> None:
    set_up(olive)
    ana = auth.User.objects.create_user("ana")
    roles.assign(writing.by("setup", via="command"), "ana", "administrator")
    browser = just_confirmed(fast_fixtures.logged_in(ana))
    lines = browser.get("/people/").context["page"].lines
    assert {line.person.name for line in lines if line.has_second_factor} == {"olive"}
    asked = browser.post("/people/olive/second-factor/")
    assert "their password" in dashboard.text(asked).lower()
    assert second_factors.are_asked(olive.pk)
    browser.post("/people/olive/second-factor/", {"confirm": "yes"})
    entry = dashboard.latest_entry()
    assert (entry.action, entry.actor, entry.subject_key) == ("user.factor_reset", "ana", "olive")
    give_password(client)
    assert is_logged_in(client)


def test_only_a_superuser_resets_a_superusers_second_factor(olive: auth.User) -> None:
    auth.User.objects.filter(pk=olive.pk).update(is_superuser=True)
    set_up(olive)
    ana = auth.User.objects.create_user("ana")
    roles.assign(writing.by("setup", via="command"), "ana", "administrator")
    browser = just_confirmed(fast_fixtures.logged_in(ana))
    assert browser.post("/people/olive/second-factor/", {"confirm": "yes"}).status_code == 403
    assert second_factors.are_asked(olive.pk)


def test_the_account_page_costs_one_query_for_factors(operator: Client, olive: auth.User) -> None:
    operator.get("/account/")
    before = dashboard.count_queries(lambda: operator.get("/account/"))
    set_up(olive)
    # One more for the recent change that the page then lists.
    assert dashboard.count_queries(lambda: operator.get("/account/")) <= before + 1


def test_a_passkey_logs_in_only_who_may_log_in_with_a_password(olive: auth.User, settings: Any) -> None:
    assert second_factor.may_use_password(olive)
    settings.AUTHENTICATION_BACKENDS = [
        "axes.backends.AxesStandaloneBackend",
        "toolbelt.web.login.backends.SuperusersBackend",
    ]
    assert not second_factor.may_use_password(olive)
    olive.is_superuser = True
    assert second_factor.may_use_password(olive)
    olive.is_active = False
    assert not second_factor.may_use_password(olive)
    olive.is_active = True
    olive.set_unusable_password()
    assert not second_factor.may_use_password(olive)
