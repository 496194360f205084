"""Tests of the row density, which each user chooses for all their browsers."""

from __future__ import annotations

import pytest
from django.contrib import auth
from django.test import Client

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.people import preferences

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

COMPACT = '<html lang="en" data-density="compact">'


def page(browser: Client, address: str = "/tools/") -> str:
    return dashboard.text(browser.get(address))


def test_rows_are_comfortable_unless_the_user_chooses_compact(viewer: Client, operator: Client) -> None:
    assert '<html lang="en">' in page(viewer)
    assert ">Compact rows<" in page(viewer)
    response = viewer.post("/account/density/", {"density": "compact", "next": "/tools/?q=git"})
    assert (response.status_code, response.headers["Location"]) == (303, "/tools/?q=git")
    assert COMPACT in page(viewer)
    assert ">Comfortable rows<" in page(viewer)
    assert '<html lang="en">' in page(operator)
    viewer.post("/account/density/", {"density": ""})
    assert '<html lang="en">' in page(viewer)


def test_the_density_is_kept_across_logins(client: Client) -> None:
    user = auth.get_user_model().objects.create_user("rosa")
    preferences.choose(user.pk, "density", "compact")
    client.force_login(user)
    assert COMPACT in page(client)


def test_changing_the_density_keeps_the_time_zone(viewer: Client) -> None:
    viewer.post("/account/time-zone/", {"zone": "Asia/Tokyo"})
    viewer.post("/account/density/", {"density": "compact"})
    row = models.Preferences.objects.get()
    assert (row.time_zone, row.density) == ("Asia/Tokyo", "compact")


def test_an_unknown_density_is_refused(viewer: Client) -> None:
    viewer.post("/account/density/", {"density": '"><script>'})
    html = page(viewer, "/account/")
    assert "choose comfortable or compact" in html
    assert "data-density" not in html
    assert not models.Preferences.objects.exists()
