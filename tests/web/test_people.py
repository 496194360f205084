"""Tests of creating people, assigning roles and deactivating accounts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests import fast_fixtures
from tests.web import dashboard
from tests.web.second_factors import confirmed
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
def administrator(root: auth.User) -> Client:
    """Return the browser of an administrator who is not a superuser."""
    user = auth.User.objects.create_user("ana")
    roles.assign(SETUP, "ana", "administrator")
    return confirmed(fast_fixtures.logged_in(user))


def create(browser: Client, **fields: Any) -> Any:
    return browser.post("/people/new/", {"name": "eve", "password": PASSWORD, "role": ["viewer"], **fields})


def test_a_person_is_created_with_roles_and_can_log_in(administrator: Client) -> None:
    assert create(administrator, role=["viewer", "operator"]).status_code == 303
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
    administrator: Client, wrong: dict[str, str], field: str, says: str
) -> None:
    response = create(administrator, **wrong)
    assert response.status_code == 422
    assert says in " ".join(response.context["page"].form.errors[field])
    assert not auth.User.objects.filter(username="eve").exists()
    assert str(wrong.get("password", PASSWORD)) not in response.content.decode()


def test_a_stale_form_does_not_change_roles(administrator: Client) -> None:
    create(administrator)
    assert (
        dashboard.post(
            administrator, "/people/eve/roles/", htmx=False, role="operator", was="viewer"
        ).status_code
        == 303
    )
    assert roles.of_user("eve") == ("operator",)
    dashboard.post(administrator, "/people/eve/roles/", htmx=False, role="viewer", was="viewer")
    assert roles.of_user("eve") == ("operator",), "another operator changed them since"
    assert "changed" in administrator.get(PEOPLE).context["page"].notice.text


def test_deactivating_requires_confirmation_and_activating_does_not(administrator: Client) -> None:
    create(administrator)
    response = dashboard.post(administrator, "/people/eve/active/", htmx=False, active="no")
    assert response.context["confirmation"].title == "Deactivate eve?"
    assert auth.User.objects.get(username="eve").is_active
    dashboard.post(
        administrator, "/people/eve/active/", htmx=False, active="no", confirm="yes", reason="Left."
    )
    assert not auth.User.objects.get(username="eve").is_active
    assert (dashboard.latest_entry().action, dashboard.latest_entry().reason) == ("user.deactivate", "Left.")
    dashboard.post(administrator, "/people/eve/active/", htmx=False, active="yes")
    assert auth.User.objects.get(username="eve").is_active


def test_the_last_administrator_cannot_be_demoted_or_deactivated(
    administrator: Client, root: auth.User
) -> None:
    root.is_superuser = False
    root.save()
    dashboard.post(administrator, "/people/ana/roles/", htmx=False, was="administrator")
    assert roles.of_user("ana") == ("administrator",)
    assert "needs an administrator" in administrator.get(PEOPLE).context["page"].notice.text
    dashboard.post(administrator, "/people/ana/active/", htmx=False, active="no", confirm="yes")
    assert auth.User.objects.get(username="ana").is_active


def test_only_a_superuser_can_change_superusers(administrator: Client) -> None:
    for address in ("/people/root/roles/", "/people/root/active/"):
        assert administrator.post(address, {"active": "no", "confirm": "yes"}).status_code == 403
    html = administrator.get(PEOPLE).content.decode()
    assert "/people/root/" not in html


def test_a_role_beyond_your_own_permissions_cannot_be_assigned(operator: Client, olive: auth.User) -> None:
    names = ["view_user", "add_user", "change_user"]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=names))
    confirmed(operator)
    assert create(operator, role=["administrator"]).status_code == 403
    assert not auth.User.objects.filter(username="eve").exists()
    mine = {"role": ["administrator"]}
    assert operator.post("/people/olive/roles/", mine).status_code == 403
    form = re.search(r'value="administrator"[^>]*disabled', operator.get(PEOPLE).content.decode())
    assert form is not None


def test_the_people_page_requires_permission(viewer: Client) -> None:
    assert viewer.get(PEOPLE).status_code == 403
    assert PEOPLE not in viewer.get("/").content.decode()


def test_query_count_does_not_grow_with_the_number_of_people(administrator: Client) -> None:
    administrator.get(PEOPLE)
    of_few = dashboard.count_queries(lambda: administrator.get(PEOPLE))
    for number in range(5):
        auth.User.objects.create_user(f"user{number}")
    assert dashboard.count_queries(lambda: administrator.get(PEOPLE)) == of_few
