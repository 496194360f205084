"""Tests of what each role may do in the admin, by the same roles as in the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import models as auth
from django.test import Client
from django.urls import reverse

from tests.admin import browsing, conftest
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import roles

SETUP = writing.by("setup", via="command")
# Staff with a role; ``own`` is a viewer who only operates ada.
PEOPLE = ("nobody", "approver", "viewer", "own", "operator", "administrator", "superuser")
VIEWERS, OPERATORS, ADMINISTRATORS, SUPERUSERS = PEOPLE[2:], PEOPLE[4:], PEOPLE[5:], PEOPLE[6:]
# Who may see, change, add and remove rows of each model.
TABLE: Mapping[type[Any], tuple[tuple[str, ...], ...]] = {
    models.Agent: (VIEWERS, OPERATORS, ADMINISTRATORS, ADMINISTRATORS),
    models.Toolkit: (VIEWERS, OPERATORS, ADMINISTRATORS, ADMINISTRATORS),
    models.Tool: (VIEWERS, OPERATORS, ADMINISTRATORS, ()),
    models.Plugin: (VIEWERS, OPERATORS, ADMINISTRATORS, ()),
    models.Loadout: (VIEWERS, ADMINISTRATORS, ADMINISTRATORS, ADMINISTRATORS),
    models.GateRule: (VIEWERS, ADMINISTRATORS, ADMINISTRATORS, ADMINISTRATORS),
    models.SubApp: (VIEWERS, ADMINISTRATORS, ADMINISTRATORS, ADMINISTRATORS),
    models.Category: (VIEWERS, ADMINISTRATORS, ADMINISTRATORS, ADMINISTRATORS),
    models.AgentSession: (VIEWERS, (), (), OPERATORS),
    models.AuditEntry: (VIEWERS, (), (), ()),
    models.CallRecord: (VIEWERS, (), (), ()),
    models.AlertDelivery: (VIEWERS, (), (), ()),
    models.ApiToken: (ADMINISTRATORS, (), (), ()),
    auth.User: (SUPERUSERS, SUPERUSERS, SUPERUSERS, SUPERUSERS),
    auth.Group: (SUPERUSERS, SUPERUSERS, SUPERUSERS, SUPERUSERS),
}


def staff(who: str) -> auth.User:
    user = auth.User.objects.create_user(who, is_staff=True, is_superuser=who == "superuser")
    if who not in ("nobody", "superuser"):
        roles.assign(SETUP, who, "viewer" if who == "own" else who)  # type: ignore[arg-type]
    if who == "own":
        roles.set_operators(SETUP, "ada", [who])
    user.refresh_from_db()
    return user


def test_the_table_covers_every_model_of_the_admin():
    ours = {model for model in admin.site._registry if model._meta.app_label in ("toolbelt", "auth")}
    assert ours == TABLE.keys(), "say in TABLE who may see, change, add and remove it"


@pytest.mark.parametrize("who", PEOPLE)
def test_each_role_has_the_permissions_in_the_table(who: str, stored: None, rf: Any) -> None:
    request = rf.get("/")
    request.user = staff(who)
    actual, expected = {}, {}
    for model, permissions in TABLE.items():
        page = admin.site._registry[model]
        # Some models' rows may only be removed together with others, not on their own pages.
        opts = model._meta
        request.resolver_match = SimpleNamespace(url_name=f"{opts.app_label}_{opts.model_name}_changelist")
        actual[model] = (
            page.has_view_permission(request),
            page.has_change_permission(request),
            page.has_add_permission(request),
            page.has_delete_permission(request),
        )
        expected[model] = tuple(who in allowed for allowed in permissions)
    assert expected == actual


@pytest.mark.parametrize("who", ["viewer", "own"])
def test_viewers_and_agent_operators_cannot_change_agents_in_the_admin(who: str, stored: None) -> None:
    browser = Client()
    browser.force_login(staff(who))
    page = browsing.open_(browser, conftest.address(conftest.agent("ada")))
    assert page.status == 200
    assert not {"title", "switches-0-on"} & page.fields.keys()
    assert browser.post(page.address, {"title": "X", **page.fields}).status_code == 403
    assert browser.get(reverse("admin:toolbelt_agent_add")).status_code == 403


def test_an_operator_can_change_agents_in_the_admin(stored: None) -> None:
    browser = Client()
    browser.force_login(staff("operator"))
    page = browsing.open_(browser, conftest.address(conftest.agent("ada")))
    assert page.type(title="Ada L.").send().was_saved
    assert conftest.agent("ada").title == "Ada L."
    assert "switches-0-on" in page.fields


def test_archiving_an_agent_in_the_admin_requires_confirmation(stored: None, client: Client) -> None:
    page = browsing.open_(client, conftest.address(conftest.agent("ada"))).type(archived="on")
    confirmation = page.send()
    assert not confirmation.was_saved
    assert "answers no requests" in confirmation.response.content.decode()
    assert not conftest.agent("ada").archived
