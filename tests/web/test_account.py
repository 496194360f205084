"""Tests of the account page and of changing the password."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests.web import dashboard
from toolbelt.control import writing
from toolbelt.control.people import tokens

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

NEW = "a quite different horse"


def change(browser: Client, old: str = "correct horse", new: str = NEW, again: str = "") -> Any:
    return browser.post(
        "/account/password/",
        {"old_password": old, "new_password1": new, "new_password2": again or new},
    )


def test_permissions_and_groups_are_listed_in_plain_words(operator: Client, olive: auth.User) -> None:
    olive.groups.add(auth.Group.objects.create(name="night shift"))
    html = dashboard.text(operator.get("/account/"))
    assert "night shift" in html
    rights = dict(operator.get("/account/").context["page"].rights)
    assert rights["Agents, their switches and overrides"] == "see, change"
    assert rights["Tools"] == "see"
    assert rights["API tokens"] == "nothing"


def test_a_superuser_gets_no_list_of_permissions(admin_client: Client) -> None:
    page = admin_client.get("/account/").context["page"]
    assert (page.user.is_superuser, page.rights) == (True, ())


def test_only_the_users_own_changes_and_tokens_are_listed(operator: Client, olive: auth.User) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    auth.User.objects.create_user("sam")
    for name in ("olive", "sam"):
        tokens.issue(writing.by(name, via="screen"), user=name, scope="read", name=f"of {name}")
    page = operator.get("/account/").context["page"]
    assert {entry.who for entry in page.entries} == {"olive"}
    assert [line.token.name for line in page.tokens] == ["of olive"]


def test_changing_the_password_keeps_this_session_and_ends_others(operator: Client, olive: auth.User) -> None:
    other = Client()
    other.force_login(olive)
    response = change(operator)
    assert (response.status_code, response.headers["Location"]) == (303, "/account/")
    olive.refresh_from_db()
    assert olive.check_password(NEW)
    assert "Password changed." in dashboard.text(operator.get("/account/"))
    assert other.get("/account/").status_code == 302


@pytest.mark.parametrize(
    ("typed", "field", "message"),
    [
        ({"old": "wrong"}, "old_password", "The password is incorrect."),
        ({"again": "something else"}, "new_password2", "The passwords do not match."),
        ({"new": "short"}, "new_password2", "at least 12 characters"),
        ({"new": "olive"}, "new_password2", "too similar"),
    ],
)
def test_an_invalid_password_change_is_reported_at_its_field(
    operator: Client, olive: auth.User, typed: dict[str, str], field: str, message: str
) -> None:
    response = change(operator, **typed)
    assert response.status_code == 422
    assert message in " ".join(response.context["page"].form.errors[field])
    assert f'id="field-{field}_error"' in dashboard.text(response)
    olive.refresh_from_db()
    assert olive.check_password("correct horse")
    assert not re.findall(r'type="password"\s+value', response.content.decode())


def test_the_admin_changes_passwords_on_this_page_alone(operator: Client, olive: auth.User) -> None:
    olive.is_staff = True
    olive.save()
    typed = {"old_password": "correct horse", "new_password1": NEW, "new_password2": NEW}
    response = operator.post("/admin/password_change/", typed)
    assert (response.status_code, response["location"]) == (302, "/account/")
    olive.refresh_from_db()
    assert olive.check_password("correct horse")


def test_repeated_wrong_current_passwords_lock_the_form(
    operator: Client, olive: auth.User, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    assert [change(operator, old=f"guess {n}").status_code for n in range(3)][-1] == 429
    assert change(operator).status_code == 429
    olive.refresh_from_db()
    assert olive.check_password("correct horse")


def test_an_externally_managed_login_cannot_change_its_password_here(
    operator: Client, olive: auth.User
) -> None:
    olive.set_unusable_password()
    olive.save()
    operator.force_login(olive)
    html = dashboard.text(operator.get("/account/"))
    assert "Toolbelt stores no password for you" in html
    assert "/account/password/" not in html


def test_password_rules_are_shown_once(operator: Client) -> None:
    html = dashboard.text(operator.get("/account/"))
    assert html.count("at least 12 characters") == 1
    assert 'aria-describedby="password-rules"' in html
