"""Tests of invitations and of links with which people choose a new password."""

from __future__ import annotations

import datetime as dt
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.core import mail
from django.test import Client

from tests import fast_fixtures
from tests.web import dashboard
from tests.web.second_factors import PASSWORD, confirmed, is_logged_in, set_up
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import password_links, roles, users
from toolbelt.store import clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

NEW = "a quite different horse"
SETUP = writing.by("setup", via="command")


@pytest.fixture
def administrator(db: None) -> Client:
    """Return the browser of an administrator who is no superuser, and has just shown who they are."""
    auth.User.objects.create_superuser("root", password=PASSWORD)
    ana = auth.User.objects.create_user("ana")
    roles.assign(SETUP, "ana", "administrator")
    return confirmed(fast_fixtures.logged_in(ana))


def invite(browser: Client, **fields: Any) -> str:
    """Invite a person, and return the path of the link that the page shows."""
    response = browser.post("/people/new/", {"name": "eve", "role": ["viewer"], **fields})
    return path(response)


def path(response: Any) -> str:
    page = response.context["page"]
    assert page.link is not None, page.form.errors
    url = urllib.parse.urlsplit(page.address)
    assert url.netloc == "testserver"
    return f"{url.path}?{url.query}"


def choose(address: str, password: str = NEW, again: str = "") -> Any:
    link = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["link"][0]
    return Client().post("/password/", {"link": link, "password": password, "again": again or password})


def logs_in(name: str, password: str) -> bool:
    browser = Client()
    browser.post("/login/", {"username": name, "password": password})
    return is_logged_in(browser)


def make(browser: Client, name: str = "olive") -> Any:
    return browser.post(f"/people/{name}/password-link/", {"confirm": "yes"})


def test_an_invited_person_chooses_a_password_and_has_the_role(administrator: Client) -> None:
    address = invite(administrator)
    assert roles.of_user("eve") == ("viewer",)
    page = Client().get(address)
    assert (page.status_code, page.context["page"].link.is_invitation) == (200, True)
    assert page.headers["Referrer-Policy"] == "strict-origin"
    assert "no-store" in page.headers["Cache-Control"]
    assert "Log in as eve" in dashboard.text(choose(address))
    assert logs_in("eve", NEW)
    entries = models.AuditEntry.objects.order_by("id").values_list("action", "actor", "subject_key")
    assert list(entries)[-4:] == [
        ("user.create", "ana", "eve"),
        ("user.roles", "ana", "eve"),
        ("user.invite", "ana", "eve"),
        ("user.password", "eve", "eve"),
    ]
    assert models.AuditEntry.objects.latest("id").reason == "With a link that ana made"


def test_an_invited_person_has_the_common_form_of_the_name(administrator: Client) -> None:
    address = invite(administrator, name="ｅｖｅ")
    assert roles.of_user("eve") == ("viewer",)
    assert "Log in as eve" in dashboard.text(choose(address))


def test_the_form_of_a_link_is_sent_as_browsers_send_it_without_the_address(
    administrator: Client,
) -> None:
    address = invite(administrator)
    browser = Client(enforce_csrf_checks=True)
    page = browser.get(address, secure=True).content.decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert found is not None
    link = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["link"][0]
    sent = {"link": link, "password": NEW, "again": NEW, "csrfmiddlewaretoken": found[1]}
    headers = {"Origin": "https://testserver", "Referer": "https://testserver/"}
    assert browser.post("/password/", sent, secure=True, headers=headers).status_code == 200


def test_the_link_is_shown_once_and_stored_as_a_hash(administrator: Client) -> None:
    secret = invite(administrator).partition("link=")[2]
    assert len(secret) >= 43
    everything = [
        str(list(model._default_manager.values()))
        for model in (models.PasswordLink, models.AuditEntry, auth.User)
    ]
    assert secret not in "".join(everything)
    assert secret not in administrator.get("/people/").content.decode()
    assert secret not in str(administrator.session.items())


def test_a_link_counts_once(administrator: Client) -> None:
    address = invite(administrator)
    choose(address)
    assert Client().get(address).status_code == 404
    assert choose(address, "yet another long horse").status_code == 404
    assert logs_in("eve", NEW)


@pytest.mark.parametrize(("is_invitation", "days"), [(True, 7), (False, 1)])
def test_a_link_expires(administrator: Client, olive: auth.User, is_invitation: bool, days: int) -> None:
    address = invite(administrator) if is_invitation else path(make(administrator))
    end = clock.now() + dt.timedelta(days=days)
    with clock.stopped(end - dt.timedelta(minutes=1)):
        assert Client().get(address).status_code == 200
    with clock.stopped(end + dt.timedelta(minutes=1)):
        assert Client().get(address).status_code == 404
        assert choose(address).status_code == 404


def test_a_new_link_replaces_the_old_one_and_a_withdrawn_one_is_invalid(
    administrator: Client, olive: auth.User
) -> None:
    first, second = path(make(administrator)), path(make(administrator))
    assert choose(first).status_code == 404
    assert Client().get(second).status_code == 200
    [line] = [each for each in administrator.get("/people/").context["page"].lines if each.link]
    assert (line.person.name, line.link.is_invitation) == ("olive", False)
    administrator.post("/people/olive/password-link/withdraw/")
    assert choose(second).status_code == 404
    assert dashboard.latest_entry().action == "user.unlink"
    assert logs_in("olive", PASSWORD)


def test_a_new_password_ends_the_logins_with_the_old_one(administrator: Client, olive: auth.User) -> None:
    browser = Client()
    browser.post("/login/", {"username": "olive", "password": PASSWORD})
    address = path(make(administrator))
    assert is_logged_in(browser)
    assert logs_in("olive", PASSWORD)
    choose(address)
    assert not is_logged_in(browser)
    assert not logs_in("olive", PASSWORD)
    assert logs_in("olive", NEW)


def test_a_link_does_not_replace_a_second_factor(administrator: Client, olive: auth.User) -> None:
    set_up(olive)
    choose(path(make(administrator)))
    assert not logs_in("olive", NEW)


@pytest.mark.parametrize(
    ("password", "again", "field", "says"),
    [
        ("short", "", "password", "at least 12 characters"),
        ("eve", "", "password", "too similar"),
        (NEW, "something else", "again", "do not match"),
    ],
)
def test_a_password_that_breaks_the_rules_keeps_the_link(
    administrator: Client, password: str, again: str, field: str, says: str
) -> None:
    address = invite(administrator)
    response = choose(address, password, again)
    assert response.status_code == 422
    assert says in str(response.context["page"].form.errors[field])
    assert choose(address).status_code == 200


@pytest.mark.parametrize("link", ["", "x", "\0", "é", "a" * 5000, "' OR 1=1"])
def test_an_unknown_link_is_not_found(link: str, client: Client) -> None:
    assert client.get("/password/", {"link": link}).status_code == 404
    sent = {"link": link, "password": NEW, "again": NEW}
    assert client.post("/password/", sent).status_code == 404


def test_a_deactivated_user_chooses_no_password(administrator: Client, olive: auth.User) -> None:
    address = path(make(administrator))
    auth.User.objects.filter(pk=olive.pk).update(is_active=False)
    assert choose(address).status_code == 404
    make(administrator)
    assert administrator.get("/people/").context["page"].notice.tone == "refused"


def test_an_administrator_makes_no_link_for_someone_who_may_do_more(administrator: Client) -> None:
    assert make(administrator, "root").status_code == 403
    max_ = auth.User.objects.create_user("max")
    max_.user_permissions.add(auth.Permission.objects.get(codename="delete_session"))
    assert make(administrator, "max").status_code == 403
    assert not models.PasswordLink.objects.exists()


def own_password(olive: auth.User) -> None:
    browser = Client()
    browser.post("/login/", {"username": "olive", "password": PASSWORD})
    new = "the horse that olive chose"
    sent = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert browser.post("/account/password/", sent).status_code == 303


def password_by_command(olive: auth.User) -> None:
    users.set_password(SETUP, "olive", "the horse of a command")


def deactivation(olive: auth.User) -> None:
    users.set_active(SETUP, "olive", False)
    users.set_active(SETUP, "olive", True)


def promotion(olive: auth.User) -> None:
    auth.User.objects.filter(pk=olive.pk).update(is_superuser=True)


def another_group(olive: auth.User) -> None:
    olive.groups.add(auth.Group.objects.create(name="security"))


def deactivation_of_the_maker(olive: auth.User) -> None:
    users.set_active(SETUP, "ana", False)


def demotion_of_the_maker(olive: auth.User) -> None:
    roles.remove(SETUP, "ana", "administrator")
    # What olive may do, the maker may still.
    auth.User.objects.get(username="ana").user_permissions.add(*olive.user_permissions.all())


def removal_of_the_maker(olive: auth.User) -> None:
    auth.User.objects.get(username="ana").delete()


CHANGES = (
    own_password,
    password_by_command,
    deactivation,
    promotion,
    another_group,
    deactivation_of_the_maker,
    demotion_of_the_maker,
    removal_of_the_maker,
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_link_ends_with_what_it_was_made_for(
    administrator: Client, olive: auth.User, change: Callable[[auth.User], None]
) -> None:
    address = path(make(administrator))
    change(olive)
    assert Client().get(address).status_code == 404
    assert choose(address).status_code == 404
    assert not logs_in("olive", NEW)


@pytest.mark.parametrize("change", CHANGES)
def test_a_link_is_checked_again_when_it_is_used(
    administrator: Client,
    olive: auth.User,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[auth.User], None],
) -> None:
    address, hashing = path(make(administrator)), users.give_password

    def slowly(user: Any, password: str) -> None:
        monkeypatch.setattr(users, "give_password", hashing)
        change(olive)
        hashing(user, password)

    monkeypatch.setattr(users, "give_password", slowly)
    assert choose(address).status_code == 404
    assert not logs_in("olive", NEW)


def test_an_invitation_ends_if_the_person_is_made_a_superuser(administrator: Client) -> None:
    address = invite(administrator)
    auth.User.objects.filter(username="eve").update(is_superuser=True, is_staff=True)
    assert choose(address).status_code == 404
    assert not logs_in("eve", NEW)


def test_making_a_link_is_confirmed(administrator: Client, olive: auth.User) -> None:
    assert "alone" in dashboard.text(administrator.post("/people/olive/password-link/"))
    assert not models.PasswordLink.objects.exists()


def test_where_passwords_are_for_superusers_only_others_get_no_link(
    administrator: Client, olive: auth.User, settings: Any
) -> None:
    address = path(make(administrator))
    settings.TOOLBELT_LOCAL_LOGIN = "superusers"
    assert choose(address).status_code == 404
    with pytest.raises(Exception, match="Only superusers"):
        password_links.make(SETUP, "olive")


def test_who_logs_in_with_the_provider_gets_no_link(
    administrator: Client, olive: auth.User, settings: Any
) -> None:
    from toolbelt.control.people import provider

    address = path(make(administrator))
    settings.TOOLBELT_SIGN_IN_ISSUER = "https://login.example.com"
    provider.identities().create(user=olive, provider="provider", uid="1")
    assert choose(address).status_code == 404
    with pytest.raises(Exception, match="bypass"):
        password_links.make(SETUP, "olive")


def test_the_link_is_mailed_where_mail_is_set_up(administrator: Client, settings: Any) -> None:
    invite(administrator, email="eve@example.com")
    assert mail.outbox == []
    settings.TOOLBELT_EMAIL_FROM = "Toolbelt <toolbelt@example.com>"
    response = administrator.post(
        "/people/new/", {"name": "kim", "role": ["viewer"], "email": "kim@example.com"}
    )
    [sent] = mail.outbox
    assert (sent.to, sent.from_email) == (["kim@example.com"], "Toolbelt <toolbelt@example.com>")
    [address] = re.findall(r"http://testserver(/password/\?link=\S+)", str(sent.body))
    assert address == path(response)
    assert "kim@example.com" in response.context["page"].sent
    assert choose(address).status_code == 200


def test_a_mail_that_cannot_be_sent_leaves_the_link_on_the_page(administrator: Client, settings: Any) -> None:
    settings.TOOLBELT_EMAIL_FROM = "toolbelt@example.com"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    response = administrator.post(
        "/people/new/", {"name": "eve", "role": ["viewer"], "email": "eve@example.com"}
    )
    assert "could not be sent" in response.context["page"].sent
    assert choose(path(response)).status_code == 200


def test_the_log_does_not_have_the_link(administrator: Client, caplog: pytest.LogCaptureFixture) -> None:
    from toolbelt.settings import logs

    address = invite(administrator)
    event = logs.withhold(None, "info", {"request": f"GET {address}"})
    assert address.partition("link=")[2] not in str(event)
