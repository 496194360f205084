"""Tests of the status page: its content, its permissions, and that it contains no secrets."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from tests.web import dashboard
from toolbelt import __version__, models
from toolbelt.control import self_checks
from toolbelt.control.config import installation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def test_the_status_page_requires_an_administrator(
    viewer: Client, operator: Client, admin_client: Client
) -> None:
    assert viewer.get("/status/").status_code == operator.get("/status/").status_code == 403
    assert "/status/" not in dashboard.text(operator.get("/agents/"))
    assert '<a href="/status/" aria-current="page">' in dashboard.text(admin_client.get("/status/"))


def test_the_page_shows_versions_database_revision_and_retention(admin_client: Client) -> None:
    models.CallRecord.objects.create(agent="ada", tool="shell", outcome="ok", duration_ms=1)
    html = dashboard.text(admin_client.get("/status/"))
    for text in (__version__, "all applied", "responds in", "Revision", "prune_calls", "github"):
        assert text in html
    assert "<dt>Calls</dt> <dd> <span>1, oldest <time" in html


def test_problems_are_listed_at_the_top(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    models.Plugin.objects.filter(name="github").update(status="failed", error="No such command.")
    monkeypatch.setattr(cache, "get", lambda *args: None)
    database = installation.Database(
        vendor="SQLite", version="3", milliseconds=0.1, pending=["toolbelt.0099_more"]
    )
    monkeypatch.setattr(installation, "_database", lambda: database)
    response = admin_client.get("/status/")
    page = response.context["page"]
    assert 'data-state="unavailable">3 problems found' in dashboard.text(response)
    assert (
        page.findings[0]
        == "Migrations are pending: toolbelt.0099_more. Run .venv/bin/python manage.py migrate."
    )
    assert page.findings[1].startswith("The cache does not respond")
    assert page.findings[-1] == "The plugin GitHub has failed."
    assert "No such command." in dashboard.text(response)


def test_the_page_contains_no_secrets(
    admin_client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> None:
        raise ConnectionError("redis://:hunter2hunter2@cache:6379 refused")

    monkeypatch.setattr(cache, "set", refuse)
    html = admin_client.get("/status/").content.decode()
    assert "ConnectionError" in html
    assert "hunter2" not in html
    assert django_settings.SECRET_KEY not in html
    assert str(django_settings.DATABASES["default"]["NAME"]) not in html


def test_the_page_fetches_how_many_verdicts_replays_reproduce(admin_client: Client, belt: None) -> None:
    assert 'hx-get="/status/replays/" hx-trigger="load"' in admin_client.get("/status/").content.decode()
    page = dashboard.text(admin_client.get("/status/replays/"))
    assert "No call of the last 30 days can be replayed as it was decided." in page


def test_calls_that_a_replay_decides_otherwise_are_named(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = self_checks.SelfCheck(
        at=timezone.now(), days=30, revisions=2, calls=10_000, reproduced=9_999, uncertain=3, mismatches=(7,)
    )
    monkeypatch.setattr(self_checks, "check", lambda: checked)

    page = dashboard.text(admin_client.get("/status/replays/"))

    assert "Replays reproduce 99.99 % of 10,000 recorded verdicts" in page
    assert 'href="/calls/7/"' in page


def test_the_result_of_the_last_night_is_shown_with_the_page(admin_client: Client, belt: None) -> None:
    assert self_checks.run_due() is not None

    html = admin_client.get("/status/").content.decode()

    assert 'hx-get="/status/replays/"' not in html
    assert "No call of the last 30 days can be replayed as it was decided." in html
