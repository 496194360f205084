"""Tests of where people are logged in: the list, and ending logins."""

from __future__ import annotations

import datetime as dt
from concurrent import futures
from typing import Any

import pytest
from django import db
from django.contrib.auth import models as auth
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from tests import fast_fixtures
from tests.web import dashboard
from tests.web.second_factors import PASSWORD, confirmed, give_password, is_logged_in, set_up
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import logins, roles, users
from toolbelt.web.login import browsers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0"
    " Safari/537.36"
)
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5"
    " Mobile/15E148 Safari/604.1"
)
EDGE = f"{CHROME} Edg/142.0.0.0"


def log_in(browser: str = FIREFOX, address: str = "192.0.2.1", name: str = "olive") -> Client:
    client = Client(headers={"User-Agent": browser}, REMOTE_ADDR=address)
    give_password(client, name)
    assert is_logged_in(client)
    return client


def listed(client: Client) -> list[tuple[str, str, bool]]:
    page = client.get("/account/").context["page"]
    return [(browser, login.address, login.is_current) for browser, login in page.logins]


@pytest.mark.parametrize(
    ("browser", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (CHROME, "Chrome on Windows"),
        (SAFARI, "Safari on iPhone"),
        (EDGE, "Edge on Windows"),
        ("curl/8.5.0", "curl"),
        ("", "Unknown browser"),
        ("<script>/1 Windows", "<script> on Windows"),
    ],
)
def test_a_browser_is_named_in_two_words(browser: str, name: str) -> None:
    assert browsers.name(browser) == name


def test_each_login_is_listed_with_its_browser_and_address(olive: auth.User) -> None:
    first = log_in()
    log_in(CHROME, "192.0.2.2")
    auth.User.objects.create_user("sam", password=PASSWORD)
    log_in(SAFARI, "192.0.2.3", "sam")
    assert sorted(listed(first)) == [
        ("Chrome on Windows", "192.0.2.2", False),
        ("Firefox on Linux", "192.0.2.1", True),
    ]


def test_a_hostile_browser_name_is_shown_as_text(olive: auth.User) -> None:
    page = dashboard.text(log_in("<script>alert(1)</script>\u202e").get("/account/"))
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_a_login_that_is_ended_asks_to_log_in_again_at_its_next_request(olive: auth.User) -> None:
    here, there, third = log_in(), log_in(CHROME, "192.0.2.2"), log_in(SAFARI, "192.0.2.3")
    row = models.Login.objects.get(address="192.0.2.2")
    assert here.post(f"/account/logins/{row.pk}/end/").status_code == 303
    assert [is_logged_in(each) for each in (here, there, third)] == [True, False, True]
    assert not Session.objects.filter(session_key=row.session_key).exists()
    entry = dashboard.latest_entry()
    assert (entry.action, entry.actor, entry.subject_key, entry.before) == (
        "user.logout",
        "olive",
        "olive",
        1,
    )
    here.post("/account/logins/end/")
    assert [is_logged_in(each) for each in (here, third)] == [True, False]
    assert len(listed(here)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_request_at_the_same_moment_does_not_bring_an_ended_login_back(olive: auth.User) -> None:
    here = log_in()

    def ask() -> bool:
        try:
            return is_logged_in(here)
        finally:
            db.connections.close_all()

    with futures.ThreadPoolExecutor(1) as pool, writing.begin():
        assert logins.end_all(writing.by("olive", via="screen"), olive) == 1
        # It is not committed yet.
        assert pool.submit(ask).result()
    assert not is_logged_in(here)


def test_another_persons_login_is_not_ended(olive: auth.User) -> None:
    auth.User.objects.create_user("sam", password=PASSWORD)
    sam = log_in(name="sam")
    row = models.Login.objects.get(user__username="sam")
    log_in().post(f"/account/logins/{row.pk}/end/")
    assert is_logged_in(sam)


def test_a_login_that_is_over_is_not_listed(olive: auth.User) -> None:
    here, there = log_in(), log_in(CHROME)
    there.post("/logout/")
    assert [browser for browser, _, _ in listed(here)] == ["Firefox on Linux"]


def test_changing_the_password_ends_the_other_logins_for_good(olive: auth.User) -> None:
    here, there = log_in(), log_in(CHROME, "192.0.2.2")
    new = "a quite different horse"
    here.post("/account/password/", {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    assert [is_logged_in(each) for each in (here, there)] == [True, False]
    assert [address for _, address, _ in listed(here)] == ["192.0.2.1"]
    assert models.Login.objects.count() == 1
    actions = models.AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["user.password", "user.logout"]


def test_changing_a_factor_ends_the_other_logins(olive: auth.User) -> None:
    here, there = log_in(), log_in(CHROME)
    set_up(olive)
    assert [is_logged_in(each) for each in (here, there)] == [True, True]
    here.post("/account/recovery-codes/")
    assert [is_logged_in(each) for each in (here, there)] == [True, False]


def administrator() -> Client:
    ana = auth.User.objects.create_user("ana")
    roles.assign(writing.by("setup", via="command"), "ana", "administrator")
    return confirmed(fast_fixtures.logged_in(ana))


@pytest.mark.parametrize("act", ["logins/end", "second-factor"])
def test_an_administrator_logs_a_person_out_everywhere(olive: auth.User, act: str) -> None:
    here, there, browser = log_in(), log_in(CHROME), administrator()
    set_up(olive)
    assert "olive" in dashboard.text(browser.post(f"/people/olive/{act}/"))
    assert is_logged_in(here)
    browser.post(f"/people/olive/{act}/", {"confirm": "yes"})
    assert [is_logged_in(each) for each in (here, there, browser)] == [False, False, True]
    entry = dashboard.latest_entry()
    assert (entry.action, entry.actor, entry.subject_key, entry.before) == ("user.logout", "ana", "olive", 2)


def test_who_is_activated_again_is_not_logged_in_again(olive: auth.User) -> None:
    auth.User.objects.create_superuser("root")
    here, write = log_in(), writing.by("setup", via="command")
    users.set_active(write, "olive", False)
    users.set_active(write, "olive", True)
    assert not is_logged_in(here)


def test_only_a_superuser_logs_a_superuser_out(olive: auth.User) -> None:
    here = log_in()
    auth.User.objects.filter(pk=olive.pk).update(is_superuser=True)
    assert administrator().post("/people/olive/logins/end/", {"confirm": "yes"}).status_code == 403
    assert is_logged_in(here)


def test_use_is_stored_every_five_minutes(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ("/account/", "/agents/", "/audit/")
    for page in pages:
        operator.get(page)
    before = {page: dashboard.count_queries(lambda page=page: operator.get(page)) for page in pages}  # type: ignore[misc]
    assert not models.Login.objects.exists()
    monkeypatch.setattr(browsers, "EVERY", 0)
    operator.get("/account/")
    first = models.Login.objects.get()
    operator.get("/agents/")
    assert models.Login.objects.get().last_used > first.last_used
    assert models.Login.objects.get().since == first.since
    monkeypatch.undo()
    assert {
        page: dashboard.count_queries(lambda page=page: operator.get(page))  # type: ignore[misc]
        for page in pages
    } == {  # the page that lists it asks whether it has ended
        **before,
        "/account/": before["/account/"] + 1,
    }


def test_requests_without_a_login_store_none(client: Client, settings: Any) -> None:
    for page in ("/login/", "/", "/healthz", "/login/passkey/", "/api/v1/agents"):
        client.get(page)
    assert not models.Login.objects.exists()


def test_logins_that_are_over_are_forgotten_a_day_later(olive: auth.User) -> None:
    here, expired, ended = log_in(), log_in(CHROME), log_in(CHROME)
    now = timezone.now()
    Session.objects.filter(session_key=expired.session.session_key).update(
        expire_date=now - dt.timedelta(minutes=1)
    )
    ended.post("/logout/")
    assert (Session.objects.count(), models.Login.objects.count()) == (2, 3)
    logins.prune(now)
    assert (Session.objects.count(), models.Login.objects.count()) == (1, 3)
    logins.prune(now + dt.timedelta(days=1, minutes=1))
    assert models.Login.objects.get().session_key == here.session.session_key
    assert is_logged_in(here)
