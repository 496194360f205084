"""Tests of creating people, assigning roles and deactivating accounts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests.web import acting
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import roles

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

PEOPLE = "/people/"
SETUP = writing.by("setup", via="command")
PASSWORD = "correct horse battery staple"


@pytest.fixture
def root() -> auth.User:
    """Return a superuser, who counts as an administrator."""
    return auth.User.objects.create_superuser("root")


@pytest.fixture
def ana(root: auth.User) -> Client:
    """Return the browser of an administrator who is not a superuser."""
    user = auth.User.objects.create_user("ana")
    roles.assign(SETUP, "ana", "administrator")
    browser = Client()
    browser.force_login(user)
    return browser


def create(browser: Client, **fields: Any) -> Any:
    return browser.post("/people/new/", {"name": "eve", "password": PASSWORD, "role": ["viewer"], **fields})


def test_a_person_is_created_with_roles_and_can_log_in(ana: Client) -> None:
    assert create(ana, role=["viewer", "operator"]).status_code == 303
    assert roles.of_user("eve") == ("viewer", "operator")
    assert auth.User.objects.get(username="eve").check_password(PASSWORD)
    actions = models.AuditEntry.objects.order_by("-id").values_list("action", "actor", "subject_key")[:2]
    assert list(actions) == [("user.roles", "ana", "eve"), ("user.create", "ana", "eve")]
    written = str(list(models.AuditEntry.objects.values()))
    assert PASSWORD not in written


@pytest.mark.parametrize(
    ("wrong", "field", "says"),
    [
        ({"name": "ana"}, "name", "already exists"),
        ({"name": "a b"}, "name", "valid username"),
        ({"name": ""}, "name", "required"),
        ({"password": "Zq8-wx"}, "password", "12 characters"),
        ({"password": "123456789012"}, "password", "numeric"),
    ],
)
def test_errors_of_a_new_person_are_shown_at_their_field(
    ana: Client, wrong: dict[str, str], field: str, says: str
) -> None:
    answer = create(ana, **wrong)
    assert answer.status_code == 422
    assert says in " ".join(answer.context["page"].form.errors[field])
    assert not auth.User.objects.filter(username="eve").exists()
    assert str(wrong.get("password", PASSWORD)) not in answer.content.decode()


def test_a_stale_form_does_not_change_roles(ana: Client) -> None:
    create(ana)
    assert (
        acting.post(ana, "/people/eve/roles/", htmx=False, role="operator", was="viewer").status_code == 303
    )
    assert roles.of_user("eve") == ("operator",)
    acting.post(ana, "/people/eve/roles/", htmx=False, role="viewer", was="viewer")
    assert roles.of_user("eve") == ("operator",), "another operator changed them since"
    assert "changed" in ana.get(PEOPLE).context["page"].notice.text


def test_deactivating_requires_confirmation_and_activating_does_not(ana: Client) -> None:
    create(ana)
    answer = acting.post(ana, "/people/eve/active/", htmx=False, active="no")
    assert answer.context["confirmation"].title == "Deactivate eve?"
    assert auth.User.objects.get(username="eve").is_active
    acting.post(ana, "/people/eve/active/", htmx=False, active="no", confirm="yes", reason="Left.")
    assert not auth.User.objects.get(username="eve").is_active
    assert (acting.newest().action, acting.newest().reason) == ("user.deactivate", "Left.")
    acting.post(ana, "/people/eve/active/", htmx=False, active="yes")
    assert auth.User.objects.get(username="eve").is_active


def test_the_last_administrator_cannot_be_demoted_or_deactivated(ana: Client, root: auth.User) -> None:
    root.is_superuser = False
    root.save()
    acting.post(ana, "/people/ana/roles/", htmx=False, was="administrator")
    assert roles.of_user("ana") == ("administrator",)
    assert "needs an administrator" in ana.get(PEOPLE).context["page"].notice.text
    acting.post(ana, "/people/ana/active/", htmx=False, active="no", confirm="yes")
    assert auth.User.objects.get(username="ana").is_active


def test_only_a_superuser_can_change_superusers(ana: Client) -> None:
    for address in ("/people/root/roles/", "/people/root/active/"):
        assert ana.post(address, {"active": "no", "confirm": "yes"}).status_code == 403
    html = ana.get(PEOPLE).content.decode()
    assert "/people/root/" not in html


def test_a_role_beyond_your_own_permissions_cannot_be_assigned(operator: Client, olive: auth.User) -> None:
    names = ["view_user", "add_user", "change_user"]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=names))
    assert create(operator, role=["administrator"]).status_code == 403
    assert not auth.User.objects.filter(username="eve").exists()
    mine = {"role": ["administrator"]}
    assert operator.post("/people/olive/roles/", mine).status_code == 403
    form = re.search(r'value="administrator"[^>]*disabled', operator.get(PEOPLE).content.decode())
    assert form is not None


def test_the_people_page_requires_permission(viewer: Client) -> None:
    assert viewer.get(PEOPLE).status_code == 403
    assert PEOPLE not in viewer.get("/").content.decode()


def test_query_count_does_not_grow_with_the_number_of_people(ana: Client) -> None:
    ana.get(PEOPLE)
    of_few = acting.queries(lambda: ana.get(PEOPLE))
    for number in range(5):
        auth.User.objects.create_user(f"user{number}")
    assert acting.queries(lambda: ana.get(PEOPLE)) == of_few
