"""Tests what each role may do in the admin, by the same table as in the dashboard."""

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
# Staff who have a role beside; ``own`` is a viewer who operates ada alone.
PEOPLE = ("nobody", "viewer", "own", "operator", "administrator", "superuser")
SEEING, OPERATING, ALL = PEOPLE[1:], PEOPLE[3:], PEOPLE[4:]
# Who may see, change, add and remove rows of each model.
TABLE: Mapping[type[Any], tuple[tuple[str, ...], ...]] = {
    models.Agent: (SEEING, OPERATING, ALL, ALL),
    models.Toolkit: (SEEING, OPERATING, ALL, ALL),
    models.Tool: (SEEING, OPERATING, ALL, ()),
    models.Plugin: (SEEING, OPERATING, ALL, ()),
    models.Loadout: (SEEING, ALL, ALL, ALL),
    models.SubApp: (SEEING, ALL, ALL, ALL),
    models.Category: (SEEING, ALL, ALL, ALL),
    models.AgentSession: (SEEING, (), (), OPERATING),
    models.AuditEntry: (SEEING, (), (), ()),
    models.CallRecord: (SEEING, (), (), ()),
    models.ApiToken: (ALL, (), (), ()),
    auth.User: (ALL, ALL, ALL, ALL),
    auth.Group: (ALL, ALL, ALL, ALL),
}


def staff(who: str) -> auth.User:
    user = auth.User.objects.create_user(who, is_staff=True, is_superuser=who == "superuser")
    if who not in ("nobody", "superuser"):
        roles.assign(SETUP, who, "viewer" if who == "own" else who)  # type: ignore[arg-type]
    if who == "own":
        roles.set_operators(SETUP, "ada", [who])
    user.refresh_from_db()
    return user


def test_the_table_names_every_model_of_the_admin():
    ours = {model for model in admin.site._registry if model._meta.app_label in ("toolbelt", "auth")}
    assert ours == TABLE.keys(), "say in TABLE who may see, change, add and remove it"


@pytest.mark.parametrize("who", PEOPLE)
def test_each_role_may_what_the_table_says(who: str, stored: None, rf: Any) -> None:
    request = rf.get("/")
    request.user = staff(who)
    found, expected = {}, {}
    for model, may in TABLE.items():
        page = admin.site._registry[model]
        # Rows of some models go with others; alone, on their own pages, they do not.
        opts = model._meta
        request.resolver_match = SimpleNamespace(url_name=f"{opts.app_label}_{opts.model_name}_changelist")
        found[model] = (
            page.has_view_permission(request),
            page.has_change_permission(request),
            page.has_add_permission(request),
            page.has_delete_permission(request),
        )
        expected[model] = tuple(who in one for one in may)
    assert expected == found


@pytest.mark.parametrize("who", ["viewer", "own"])
def test_who_may_not_flip_every_agent_changes_none_in_the_admin(who: str, stored: None) -> None:
    browser = Client()
    browser.force_login(staff(who))
    page = browsing.open_(browser, conftest.address(conftest.agent("ada")))
    assert page.status == 200
    assert not {"title", "switches-0-on"} & page.fields.keys()
    assert browser.post(page.address, {"title": "X", **page.fields}).status_code == 403
    assert browser.get(reverse("admin:toolbelt_agent_add")).status_code == 403


def test_an_operator_flips_in_the_admin(stored: None) -> None:
    browser = Client()
    browser.force_login(staff("operator"))
    page = browsing.open_(browser, conftest.address(conftest.agent("ada")))
    assert page.type(title="Ada L.").send().was_saved
    assert conftest.agent("ada").title == "Ada L."
    assert "switches-0-on" in page.fields


def test_an_agent_is_archived_in_the_admin_once_that_is_confirmed(stored: None, client: Client) -> None:
    page = browsing.open_(client, conftest.address(conftest.agent("ada"))).type(archived="on")
    asked = page.send()
    assert not asked.was_saved
    assert "answers no requests" in asked.response.content.decode()
    assert not conftest.agent("ada").archived
