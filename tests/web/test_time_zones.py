"""Tests that times and days are in the time zone of the account or the browser."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib import auth
from django.test import Client
from django.utils import timezone

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.people import preferences

pytestmark = pytest.mark.django_db

EVENING = dt.datetime(2026, 3, 3, 23, 30, tzinfo=dt.UTC)


@pytest.fixture
def logged(belt: None) -> None:
    """Store a change at 23:30 UTC."""
    models.AuditEntry.objects.create(
        at=EVENING,
        actor="sam",
        via="api",
        action="switch.set",
        subject_kind="agent",
        subject_key="ada",
        after=True,
    )


def audit_log_in(browser: Client, zone: str = "") -> str:
    """Return the audit log as shown to a browser in a time zone."""
    if zone:
        browser.cookies["toolbelt-zone"] = zone
    return dashboard.text(browser.get("/audit/"))


def test_without_a_known_zone_times_use_the_servers_zone(viewer: Client, logged: None) -> None:
    assert 'title="3 Mar 2026, 23:30:00 UTC">23:30</time>' in audit_log_in(viewer)


def test_times_use_the_browsers_zone_and_show_it_on_hover(viewer: Client, logged: None) -> None:
    html = audit_log_in(viewer, "Asia%2FTokyo")
    assert '<time datetime="2026-03-04T08:30:00+09:00" title="4 Mar 2026, 08:30:00 JST">08:30</time>' in html


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "<script>", "\x00", "Europe"])
def test_an_invalid_zone_cookie_is_ignored(viewer: Client, logged: None, zone: str) -> None:
    assert "23:30:00 UTC" in audit_log_in(viewer, zone)


def test_the_accounts_zone_takes_precedence_and_can_be_cleared(viewer: Client, logged: None) -> None:
    assert viewer.post("/account/time-zone/", {"zone": "America/New_York"}).status_code == 303
    assert "18:30:00 EST" in audit_log_in(viewer, "Asia/Tokyo")
    assert 'value="America/New_York" selected' in viewer.get("/account/").content.decode()
    viewer.post("/account/time-zone/", {"zone": ""})
    assert "08:30:00 JST" in audit_log_in(viewer, "Asia/Tokyo")


def test_the_accounts_zone_is_kept_across_logins(client: Client, logged: None) -> None:
    user = auth.get_user_model().objects.create_user("rosa", password="correct horse")
    preferences.choose(user.pk, "time_zone", "Asia/Kolkata")
    client.force_login(user)
    assert "05:00:00 IST" in audit_log_in(client, "Asia/Tokyo")


def test_an_unknown_zone_is_refused(viewer: Client, belt: None) -> None:
    viewer.post("/account/time-zone/", {"zone": "Mars/Olympus"})
    assert "is not a time zone" in dashboard.text(viewer.get("/account/"))
    assert not models.Preferences.objects.exists()


def test_day_filters_use_the_users_zone(viewer: Client, logged: None) -> None:
    def shown(zone: str, day: str) -> bool:
        viewer.cookies["toolbelt-zone"] = zone
        return bool(viewer.get("/audit/", {"since": day, "until": day}).context["page"].days)

    assert shown("UTC", "2026-03-03")
    assert not shown("UTC", "2026-03-04")
    assert shown("Asia/Tokyo", "2026-03-04")
    assert not shown("Asia/Tokyo", "2026-03-03")


def test_the_zone_is_reset_after_each_request(viewer: Client, logged: None) -> None:
    audit_log_in(viewer, "Asia/Tokyo")
    assert timezone.get_current_timezone_name() == timezone.get_default_timezone_name()


def test_exports_have_times_in_utc(viewer: Client, logged: None) -> None:
    viewer.cookies["toolbelt-zone"] = "Asia/Tokyo"
    sent = b"".join(viewer.get("/audit/download/?form=csv")).decode()
    assert "2026-03-03T23:30:00+00:00" in sent
