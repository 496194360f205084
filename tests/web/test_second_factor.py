"""Tests of logging in with a second factor: apps and recovery codes. Passkeys: tests/browser/test_passkeys.py."""

from __future__ import annotations

import threading
from concurrent import futures
from typing import Any

import pytest
from axes import models as axes
from django import db
from django.contrib.auth import models as auth
from django.core.cache import cache
from django.test import Client

from tests import fast_fixtures
from tests.web import dashboard
from tests.web.second_factors import PASSWORD, code, give_code, give_password, is_logged_in, set_up
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import second_factors
from toolbelt.store import encryption
from toolbelt.web.login import second_factor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def test_a_login_with_the_password_and_the_apps_code_opens_the_page_that_was_asked_for(
    client: Client, olive: auth.User
) -> None:
    secret, _ = set_up(olive)
    asked = give_password(client, next="/audit/")
    assert (asked.status_code, asked.context["person"]) == (200, "olive")
    response = give_code(client, code(secret), next="/audit/")
    assert (response.status_code, response.headers["Location"]) == (302, "/audit/")
    assert is_logged_in(client)
    assert second_factor._PENDING not in client.session


def test_codes_are_typed_with_spaces_too(client: Client, olive: auth.User) -> None:
    secret, _ = set_up(olive)
    give_password(client)
    shown = code(secret)
    assert give_code(client, f" {shown[:3]} {shown[3:]}").status_code == 302


@pytest.mark.parametrize("door", ["/login/", "/admin/login/"])
@pytest.mark.parametrize("is_superuser", [False, True])
def test_the_password_alone_opens_nothing(
    client: Client, olive: auth.User, is_superuser: bool, door: str
) -> None:
    auth.User.objects.filter(pk=olive.pk).update(is_superuser=is_superuser, is_staff=is_superuser)
    set_up(olive)
    client.post(door, {"username": "olive", "password": PASSWORD})
    give_password(client)
    assert "_auth_user_id" not in client.session
    doors = ("/", "/account/", "/admin/", "/live/", "/account/app/", "/account/confirm/", "/status/")
    assert {client.get(door).status_code for door in doors} == {302}
    assert client.get("/api/v1/agents").status_code == 401
    assert client.get("/metrics").status_code == 401
    assert dashboard.switch(client, "issues", "false", "true").status_code in (200, 302, 403)
    assert dashboard.stored_agent().switches["issues"] is True
    authorize = client.get("/oauth/authorize/")
    assert authorize.status_code in (302, 404)
    assert "second-factor" not in authorize.headers.get("Location", "")


def test_a_code_without_the_password_logs_no_one_in(client: Client, olive: auth.User) -> None:
    secret, _ = set_up(olive)
    assert give_code(client, code(secret)).status_code == 403
    assert client.get("/login/second-factor/").headers["Location"] == "/login/?next=/"
    assert not is_logged_in(client)


def test_a_code_counts_once_in_all_processes(client: Client, olive: auth.User) -> None:
    secret, _ = set_up(olive)
    shown = code(secret)
    give_password(client)
    assert give_code(client, shown).status_code == 302
    other = Client()
    give_password(other)
    assert give_code(other, shown).status_code == 200
    assert not is_logged_in(other)
    assert give_code(other, code(secret, 1)).status_code == 302


def test_the_code_that_set_the_app_up_does_not_log_in(client: Client, olive: auth.User) -> None:
    secret = second_factors.new_secret()
    shown = code(secret)
    second_factors.add_app(writing.by("olive", via="screen"), olive, secret, shown)
    give_password(client)
    assert give_code(client, shown).status_code == 200
    assert not is_logged_in(client)


@pytest.mark.parametrize("steps", [-3, 3])
def test_an_old_or_a_future_code_is_wrong(client: Client, olive: auth.User, steps: int) -> None:
    secret, _ = set_up(olive)
    give_password(client)
    response = give_code(client, code(secret, steps))
    assert response.status_code == 200
    assert response.context["form"].errors["code"] == [second_factor.WRONG]
    assert not is_logged_in(client)


@pytest.mark.parametrize("typed", ["", "0", "abcdef", "١٢٣٤٥٦", "1" * 40, "\0"])
def test_what_is_no_code_is_wrong(client: Client, olive: auth.User, typed: str) -> None:
    set_up(olive)
    give_password(client)
    assert give_code(client, typed).status_code == 200
    assert not is_logged_in(client)


def test_a_recovery_code_logs_in_once(client: Client, olive: auth.User) -> None:
    _, codes = set_up(olive)
    assert len(set(codes)) == 10
    give_password(client)
    assert give_code(client, codes[3]).status_code == 302
    assert second_factors.of_user(olive.pk).codes_left == 9
    other = Client()
    give_password(other)
    assert give_code(other, codes[3]).status_code == 200
    assert give_code(other, codes[4]).status_code == 302


def test_another_persons_code_is_wrong(client: Client, olive: auth.User) -> None:
    set_up(olive)
    sam = auth.User.objects.create_user("sam", password=PASSWORD)
    secret, codes = set_up(sam)
    give_password(client)
    assert give_code(client, code(secret)).status_code == 200
    assert give_code(client, codes[0]).status_code == 200
    assert not is_logged_in(client)


def test_wrong_codes_lock_the_second_factor_from_every_address(
    client: Client, olive: auth.User, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    secret, _ = set_up(olive)
    for number in range(3):
        other = Client(REMOTE_ADDR=f"192.0.2.{number}")
        give_password(other)
        give_code(other, "000000")
    give_password(client)
    assert give_code(client, code(secret)).status_code == 429
    assert not is_logged_in(client)


def test_a_second_factor_that_is_locked_is_in_the_audit_log_once(
    client: Client, olive: auth.User, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    set_up(olive)
    give_password(client)
    locked = models.AuditEntry.objects.filter(action="user.factor_lock")
    for _ in range(2):
        give_code(client, "000000")
    assert not locked.exists()
    for _ in range(3):
        give_code(client, "000000")
    entry = locked.get()
    assert (entry.actor, entry.actor_kind, entry.subject_key, entry.after) == (
        "toolbelt",
        "clock",
        "olive",
        "logins",
    )
    assert "000000" not in str(locked.values())
    stolen = fast_fixtures.logged_in(olive)
    for _ in range(5):
        stolen.post("/account/confirm/", {"code": "000000"})
    assert [each.after for each in locked.order_by("id")] == ["logins", "confirmations"]


def test_the_right_code_forgets_the_wrong_ones(client: Client, olive: auth.User, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    secret, codes = set_up(olive)
    for right in (code(secret), codes[0]):
        browser = Client()
        give_password(browser)
        assert [give_code(browser, "000000").status_code for _ in range(2)] == [200, 200]
        assert give_code(browser, right).status_code == 302


def test_no_one_locks_a_second_factor_without_the_password(
    client: Client, olive: auth.User, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    secret, _ = set_up(olive)
    for suffix in (" (second factor)", " (second factor) "):
        for _ in range(3):
            Client().post("/login/", {"username": f"olive{suffix}", "password": "guess"})
    give_password(client)
    assert give_code(client, code(secret)).status_code == 302


def test_wrong_codes_are_not_stored(client: Client, olive: auth.User) -> None:
    set_up(olive)
    give_password(client)
    give_code(client, "123456")
    assert axes.AccessAttempt.objects.count() == 1
    assert "123456" not in str(list(axes.AccessAttempt.objects.values()))


def test_the_password_counts_for_five_minutes(client: Client, olive: auth.User) -> None:
    secret, _ = set_up(olive)
    give_password(client)
    session = client.session
    session["toolbelt.password_given"] |= {"until": 1}
    session.save()
    assert give_code(client, code(secret)).status_code == 403
    assert not is_logged_in(client)


@pytest.mark.parametrize("change", ["password", "deactivated"])
def test_a_login_between_the_steps_ends_with(client: Client, olive: auth.User, change: str) -> None:
    secret, _ = set_up(olive)
    give_password(client)
    if change == "password":
        olive.set_password("another horse battery")
    else:
        olive.is_active = False
    olive.save()
    assert give_code(client, code(secret)).status_code == 403
    assert not is_logged_in(client)


def test_the_session_of_the_first_step_is_a_new_one(client: Client, olive: auth.User) -> None:
    secret, _ = set_up(olive)
    client.get("/login/passkey/")
    first = client.cookies["sessionid"].value
    give_password(client)
    second = client.cookies["sessionid"].value
    give_code(client, code(secret))
    assert len({first, second, client.cookies["sessionid"].value}) == 3


def test_what_was_entered_before_the_login_expired_survives_both_steps(
    olive: auth.User, operator: Client
) -> None:
    secret, _ = set_up(olive)
    operator.get("/")
    operator.cookies.pop("sessionid")
    expired = dashboard.switch(operator, "issues", "false", "true", htmx=False)
    kept = expired.context["kept"]
    asked = give_password(operator, kept=kept)
    assert asked.context["kept"] == kept
    response = give_code(operator, code(secret), kept=kept)
    assert response.context["kept"].path == "/agents/ada/switches/issues/"


def test_secrets_are_encrypted_where_there_is_a_key_and_the_key_is_needed(
    client: Client, olive: auth.User, settings: Any
) -> None:
    settings.TOOLBELT_ENCRYPTION_KEYS = [encryption.new_key()]
    secret, codes = set_up(olive)
    stored = str(list(second_factors._model().objects.values_list("data", flat=True)))
    assert secret not in stored
    assert "sealed:" in stored
    give_password(client)
    assert give_code(client, code(secret)).status_code == 302
    settings.TOOLBELT_ENCRYPTION_KEYS = [encryption.new_key()]
    other = Client()
    give_password(other)
    response = give_code(other, codes[0])
    assert response.status_code == 200
    assert "TOOLBELT_ENCRYPTION_KEYS" in str(response.context["form"].errors["code"])
    assert not is_logged_in(other)


def test_rotating_keys_encrypts_secrets_again_also_those_from_before_the_first_key(
    client: Client, olive: auth.User, settings: Any
) -> None:
    secret, codes = set_up(olive)
    old, new = encryption.new_key(), encryption.new_key()
    settings.TOOLBELT_ENCRYPTION_KEYS = [old]
    assert second_factors.encrypt_again() == (2, 0)
    assert secret not in str(list(second_factors._model().objects.values_list("data", flat=True)))
    settings.TOOLBELT_ENCRYPTION_KEYS = [new, old]
    assert second_factors.encrypt_again() == (2, 0)
    settings.TOOLBELT_ENCRYPTION_KEYS = [new]
    give_password(client)
    assert give_code(client, codes[0]).status_code == 302


def test_a_login_by_password_takes_few_queries(client: Client, olive: auth.User) -> None:
    cache.clear()
    without = dashboard.count_queries(lambda: give_password(client))
    assert is_logged_in(client)
    assert without <= 25


@pytest.mark.django_db(transaction=True)
def test_of_many_logins_at_the_same_time_a_code_is_one_of_one(olive: auth.User) -> None:
    secret, _ = set_up(olive)
    shown = code(secret)
    browsers = [Client() for _ in range(4)]
    for browser in browsers:
        give_password(browser)
    start = threading.Barrier(len(browsers))

    def log_in(browser: Client) -> int:
        start.wait()
        try:
            return int(give_code(browser, shown).status_code)
        finally:
            db.connections.close_all()

    with futures.ThreadPoolExecutor(len(browsers)) as pool:
        statuses = sorted(pool.map(log_in, browsers))
    assert statuses == [200, 200, 200, 302]


@pytest.mark.django_db(transaction=True)
def test_a_login_at_the_moment_in_which_a_factor_is_added_does_not_last(
    client: Client, olive: auth.User, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_password(client)
    page = client.get("/account/app/").context["page"]
    sent = {"setup": page.form["setup"].value(), "code": code(page.form.secret(olive))}
    asked, begun, thief = second_factors.are_asked, threading.Event(), Client()

    def add() -> int:
        begun.wait()
        try:
            return int(client.post("/account/app/", sent).status_code)
        finally:
            db.connections.close_all()

    with futures.ThreadPoolExecutor(1) as pool:
        added = pool.submit(add)

        def slowly(user: int) -> bool:
            is_asked = asked(user)
            monkeypatch.setattr(second_factors, "are_asked", asked)
            begun.set()
            # It waits for this login to be decided.
            futures.wait([added], timeout=1)
            return is_asked

        monkeypatch.setattr(second_factors, "are_asked", slowly)
        give_password(thief)
        assert added.result() == 200
    assert second_factors.are_asked(olive.pk)
    assert not is_logged_in(thief)
    assert is_logged_in(client)


def test_an_audit_entry_names_the_factor_and_never_its_secret(olive: auth.User) -> None:
    secret, codes = set_up(olive)
    [entry] = models.AuditEntry.objects.filter(action="user.factor_add")
    assert (entry.actor, entry.subject_key, entry.after) == ("olive", "olive", "Authenticator app")
    written = str(list(models.AuditEntry.objects.values()))
    assert not [text for text in (secret, *codes) if text in written]
