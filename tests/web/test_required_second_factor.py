"""Tests of demanding a second factor."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests.web import dashboard
from tests.web.second_factors import code, give_code, give_password, set_up
from toolbelt.control import writing
from toolbelt.control.people import roles, second_factors

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

HOME = "/account/#second-factor"
CLOSED = ("/", "/agents/", "/audit/", "/live/", "/admin/", "/metrics", "/people/", "/account/time-zone/")


@pytest.fixture
def required(settings: Any) -> Any:
    settings.TOOLBELT_REQUIRE_SECOND_FACTOR = "everyone"
    return settings


def test_a_login_without_a_second_factor_can_only_set_one_up(
    client: Client, olive: auth.User, required: Any
) -> None:
    auth.User.objects.filter(pk=olive.pk).update(is_superuser=True, is_staff=True)
    give_password(client)
    for page in CLOSED:
        response = client.get(page)
        assert (response.status_code, response.headers["Location"]) == (303, HOME), page
    assert dashboard.switch(client, "issues", "false", "true").headers["HX-Redirect"] == HOME
    assert dashboard.stored_agent().switches["issues"] is True
    assert client.get("/account/").context["page"].notice.tone == "refused"
    page = client.get("/account/app/").context["page"]
    secret = page.secret.replace(" ", "")
    client.post("/account/app/", {"setup": page.form["setup"].value(), "code": code(secret, -1)})
    assert client.get("/agents/").status_code == 200
    other = Client()
    give_password(other)
    give_code(other, code(secret))
    assert other.get("/agents/").status_code == 200


def test_only_administrators_must_have_one_if_so_set(client: Client, olive: auth.User, required: Any) -> None:
    required.TOOLBELT_REQUIRE_SECOND_FACTOR = "administrators"
    give_password(client)
    assert client.get("/agents/").status_code == 200
    roles.assign(writing.by("setup", via="command"), "olive", "administrator")
    other = Client()
    give_password(other)
    assert other.get("/agents/").status_code == 303
    required.TOOLBELT_REQUIRE_SECOND_FACTOR = "off"
    assert other.get("/agents/").status_code == 200


def test_the_last_one_stays(client: Client, olive: auth.User, required: Any) -> None:
    secret, _ = set_up(olive)
    give_password(client)
    give_code(client, code(secret))
    app = second_factors.of_user(olive.pk).app
    assert app is not None
    client.post(f"/account/factors/{app.id}/remove/", {"confirm": "yes"})
    assert client.get("/account/").context["page"].notice.tone == "refused"
    assert second_factors.are_asked(olive.pk)
    assert second_factors.of_user(olive.pk).codes_left == 10


def test_a_login_that_demands_none_costs_no_query(client: Client, olive: auth.User, required: Any) -> None:
    secret, _ = set_up(olive)
    give_password(client)
    give_code(client, code(secret))
    client.get("/agents/")
    with_setting = dashboard.count_queries(lambda: client.get("/agents/"))
    required.TOOLBELT_REQUIRE_SECOND_FACTOR = "off"
    assert dashboard.count_queries(lambda: client.get("/agents/")) == with_setting
