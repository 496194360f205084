"""Tests of for whom an administrator may act: whose password, second factor and logins they may change."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests import fast_fixtures
from tests.web.second_factors import PASSWORD, confirmed, set_up
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import password_links, roles, second_factors, users
from toolbelt.core import errors
from toolbelt.store import operators

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

SETUP = writing.by("setup", via="command")
NEW = "a quite different horse"
CONFIRM = (303, "/account/confirm/?next=%2Fpeople%2F")
ACTS = ("password-link", "second-factor", "active", "logins/end")


def act(browser: Client, name: str, what: str, active: str = "no") -> Any:
    return browser.post(f"/people/{name}/{what}/", {"confirm": "yes", "active": active})


def person(name: str, *permissions: str, role: roles.Role | None = None) -> auth.User:
    user = auth.User.objects.create_user(name, password=PASSWORD)
    user.user_permissions.add(*auth.Permission.objects.filter(codename__in=permissions))
    if role:
        roles.assign(SETUP, name, role)
    return user


def unconfirm(browser: Client) -> None:
    """Let ten minutes pass since the person has shown who they are."""
    session = browser.session
    session["toolbelt.confirmed"] -= 601
    session.save()


@pytest.fixture
def pam(db: None) -> Client:
    """Return the browser of a person who may change people, and nothing else."""
    auth.User.objects.create_superuser("root")
    return confirmed(fast_fixtures.logged_in(person("pam", "view_user", "change_user")))


@pytest.fixture
def ana(db: None) -> Client:
    """Return the browser of an administrator."""
    auth.User.objects.create_superuser("root")
    return confirmed(fast_fixtures.logged_in(person("ana", role="administrator")))


@pytest.mark.parametrize("what", ["password-link", "second-factor"])
def test_what_a_person_logs_in_with_is_changed_by_who_has_just_shown_who_they_are(
    ana: Client, what: str
) -> None:
    eve = person("eve")
    set_up(eve)
    unconfirm(ana)
    for sent in ({}, {"confirm": "yes"}):
        response = ana.post(f"/people/eve/{what}/", sent)
        assert (response.status_code, response.headers["Location"]) == CONFIRM
    assert second_factors.are_asked(eve.pk)
    assert not models.PasswordLink.objects.exists()
    back = ana.post("/account/confirm/", {"password": PASSWORD, "next": "/people/"})
    assert (back.status_code, back.headers["Location"]) == (303, "/people/")
    act(ana, "eve", what)
    done = {"password-link": "user.password_link", "second-factor": "user.factor_reset"}[what]
    assert models.AuditEntry.objects.filter(action=done, actor="ana", subject_key="eve").exists()


def test_a_user_is_created_by_who_has_just_shown_who_they_are(ana: Client) -> None:
    unconfirm(ana)
    assert 'href="/account/confirm/?next=%2Fpeople%2F"' in ana.get("/people/").content.decode()
    new = {"name": "eve", "role": ["administrator"]}
    for password in ("", NEW):
        response = ana.post("/people/new/", {**new, "password": password})
        assert (response.status_code, response.headers["Location"]) == CONFIRM
    assert not auth.User.objects.filter(username="eve").exists()
    ana.post("/account/confirm/", {"password": PASSWORD, "next": "/people/"})
    assert 'action="/people/new/"' in ana.get("/people/").content.decode()
    ana.post("/people/new/", new)
    assert roles.of_user("eve") == ("administrator",)


def test_the_admin_adds_a_user_for_who_has_just_shown_who_they_are(db: None) -> None:
    browser = confirmed(
        fast_fixtures.logged_in(auth.User.objects.create_superuser("root", password=PASSWORD))
    )
    unconfirm(browser)
    new = {"username": "eve", "usable_password": "true", "password1": NEW, "password2": NEW}
    add = "/admin/auth/user/add/"
    assert browser.get(add).headers["Location"] == f"/account/confirm/?{urlencode({'next': add})}"
    assert browser.post(add, new).headers["Location"] == f"/account/confirm/?{urlencode({'next': add})}"
    assert not auth.User.objects.filter(username="eve").exists()
    browser.post("/account/confirm/", {"password": PASSWORD, "next": add})
    browser.post(add, new)
    assert auth.User.objects.filter(username="eve").exists()


def test_what_a_person_may_do_is_changed_by_who_has_just_shown_who_they_are(ana: Client) -> None:
    person("eve", role="viewer")
    unconfirm(ana)
    page = ana.get("/people/").content.decode()
    assert ("Confirm to change" in page, "Save roles" in page) == (True, False)
    sent = {"role": ["administrator"], "was": ["viewer"]}
    response = ana.post("/people/eve/roles/", sent)
    assert (response.status_code, response.headers["Location"]) == CONFIRM
    assert roles.of_user("eve") == ("viewer",)
    ana.post("/account/confirm/", {"password": PASSWORD, "next": "/people/"})
    ana.post("/people/eve/roles/", sent)
    assert roles.of_user("eve") == ("administrator",)


def test_a_person_is_activated_by_who_has_just_shown_who_they_are_and_deactivated_at_once(
    ana: Client,
) -> None:
    eve = person("eve")
    unconfirm(ana)
    act(ana, "eve", "active", "no")
    eve.refresh_from_db()
    assert not eve.is_active
    response = act(ana, "eve", "active", "yes")
    assert (response.status_code, response.headers["Location"]) == CONFIRM
    eve.refresh_from_db()
    assert not eve.is_active
    act(confirmed(ana), "eve", "active", "yes")
    eve.refresh_from_db()
    assert eve.is_active


def test_the_admin_changes_rights_for_who_has_just_shown_who_they_are(db: None) -> None:
    browser = confirmed(fast_fixtures.logged_in(auth.User.objects.create_superuser("root")))
    unconfirm(browser)
    eve, group = person("eve"), auth.Group.objects.create(name="security")
    for address in (
        f"/admin/auth/user/{eve.pk}/change/",
        f"/admin/auth/group/{group.pk}/change/",
        "/admin/auth/group/add/",
    ):
        for response in (browser.get(address), browser.post(address, {"is_superuser": "on"})):
            assert response.headers["Location"] == f"/account/confirm/?{urlencode({'next': address})}"
        assert confirmed(browser).get(address).status_code == 200
        unconfirm(browser)


@pytest.mark.parametrize("what", ["password-link", "second-factor"])
def test_ones_own_is_changed_on_account_alone(ana: Client, what: str) -> None:
    user = auth.User.objects.get(username="ana")
    set_up(user)
    act(ana, "ana", what)
    assert "on Account" in ana.get("/people/").context["page"].notice.text
    assert second_factors.are_asked(user.pk)
    assert not models.PasswordLink.objects.exists()


@pytest.mark.parametrize("key", ["{}", "0{}", "%20{}"])
def test_the_admin_changes_no_ones_own_password(client: Client, key: str) -> None:
    root = auth.User.objects.create_superuser("root", password=PASSWORD)
    browser = confirmed(fast_fixtures.logged_in(root))
    sent = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    response = browser.post(f"/admin/auth/user/{key.format(root.pk)}/password/", sent)
    assert (response.status_code, response.headers["Location"]) == (302, "/account/")
    root.refresh_from_db()
    assert root.check_password(PASSWORD)


def test_the_admin_changes_passwords_for_who_has_just_shown_who_they_are(client: Client) -> None:
    browser = fast_fixtures.logged_in(auth.User.objects.create_superuser("root", password=PASSWORD))
    eve = person("eve")
    address = f"/admin/auth/user/{eve.pk}/password/"
    sent = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    for response in (browser.get(address), browser.post(address, sent)):
        assert response.headers["Location"].startswith("/account/confirm/?next=%2Fadmin%2F")
    confirmed(browser).post(address, sent)
    eve.refresh_from_db()
    assert eve.check_password(NEW)


@pytest.mark.parametrize("what", ACTS)
@pytest.mark.parametrize("is_active", [True, False])
def test_no_one_acts_for_who_has_another_permission_active_or_not(
    pam: Client, what: str, is_active: bool
) -> None:
    person("ann", role="administrator")
    auth.User.objects.filter(username="ann").update(is_active=is_active)
    for active in ("yes", "no"):
        assert act(pam, "ann", what, active).status_code == 403
    assert auth.User.objects.get(username="ann").is_active is is_active


def test_a_stronger_person_is_not_made_weaker_by_deactivating_them(pam: Client) -> None:
    ann = person("ann", role="administrator")
    set_up(ann)
    act(pam, "ann", "active", "no")
    act(pam, "ann", "second-factor")
    act(pam, "ann", "active", "yes")
    ann.refresh_from_db()
    assert (ann.is_active, second_factors.are_asked(ann.pk)) == (True, True)


@pytest.mark.parametrize("what", ACTS)
def test_no_one_acts_for_a_member_of_a_group_that_they_are_not_in(ana: Client, what: str) -> None:
    security = auth.Group.objects.create(name="security")
    person("sec", role="approver").groups.add(security)
    assert act(ana, "sec", what).status_code == 403
    auth.User.objects.get(username="ana").groups.add(security)
    assert act(ana, "sec", what).status_code != 403


@pytest.mark.parametrize("what", ACTS)
def test_no_one_acts_for_an_operator_of_an_agent_that_they_do_not_operate(pam: Client, what: str) -> None:
    person("olga")
    operators.put("ada", ["olga"])
    operators.put("bob", ["pam"])
    assert act(pam, "olga", what).status_code == 403
    operators.put("ada", ["olga", "pam"])
    assert act(pam, "olga", what).status_code != 403


@pytest.mark.parametrize("what", ACTS)
def test_an_administrator_acts_for_every_role_and_for_operators_of_agents(ana: Client, what: str) -> None:
    for role in roles.ROLES:
        person(f"a-{role}", role=role)
        operators.put("ada", [f"a-{role}"])
        assert act(ana, f"a-{role}", what).status_code != 403


def test_the_page_offers_no_act_for_people_who_may_do_more(pam: Client) -> None:
    person("ann", role="administrator")
    person("eve")
    lines = pam.get("/people/").context["page"].lines
    assert {line.person.name: line.is_weaker for line in lines} == {
        "ann": False,
        "eve": True,
        "pam": True,
        "root": False,
    }
    page = pam.get("/people/").content.decode()
    assert "/people/eve/active/" in page
    assert "/people/ann/active/" not in page


def test_the_comparison_counts_when_it_is_written(pam: Client) -> None:
    person("ann", role="administrator")
    write = writing.by("pam", via="screen")
    for attempt in (
        lambda: password_links.make(write, "ann"),
        lambda: second_factors.reset(write, "ann"),
        lambda: users.set_active(write, "ann", False),
        lambda: users.log_out(write, "ann"),
    ):
        with pytest.raises(errors.Refused, match="ask a superuser"):
            attempt()
    assert not models.PasswordLink.objects.exists()
    assert auth.User.objects.get(username="ann").is_active
