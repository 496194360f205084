"""Tests that requests to a host that is not configured get a page and a log entry that name the setting."""

from __future__ import annotations

from typing import Any

import pytest
import structlog
from django.test import Client

from toolbelt.web.kit import unconfigured

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unconfigured, "_logged", {})


def test_a_disallowed_host_gets_a_page_naming_the_setting() -> None:
    with structlog.testing.capture_logs() as logs:
        answer = Client().get("/login/", headers={"host": "box.local:8000"})
        Client().get("/login/", headers={"host": "box.local:8000"})
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS=…,box.local" in answer.content.decode()
    # A repetition within a minute is not logged.
    events = [(one["event"], one.get("host"), one.get("setting")) for one in logs if "setting" in one]
    assert events == [("host not allowed", "box.local:8000", "ALLOWED_HOSTS")]


@pytest.mark.parametrize("host", ["<script>", "a b", "x" * 5000, ""])
def test_an_invalid_host_is_not_echoed(host: str) -> None:
    answer = Client().get("/login/", headers={"host": host} if host else {})
    assert "<script>" not in answer.content.decode().partition("<h1>")[2]
    if host:
        assert answer.status_code == 400


@pytest.fixture
def over_https(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000"])
def test_plain_http_on_localhost_gets_a_page_naming_the_setting(over_https: None, host: str) -> None:
    with structlog.testing.capture_logs() as logs:
        answer = Client().get("/", headers={"host": host})
    assert answer.status_code == 400
    assert "TOOLBELT_INSECURE_HTTP=on" in answer.content.decode()
    assert "default-src" in answer.headers["Content-Security-Policy"]
    assert [one["setting"] for one in logs if "setting" in one] == ["TOOLBELT_INSECURE_HTTP"]


def test_the_page_renders_without_collected_static_files(
    over_https: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise ValueError("Missing staticfiles manifest entry")

    monkeypatch.setattr(unconfigured, "render", broken)
    assert "TOOLBELT_INSECURE_HTTP=on" in Client().get("/", headers={"host": "localhost"}).content.decode()


def test_probes_answer_over_plain_http(over_https: None) -> None:
    assert Client().get("/healthz", headers={"host": "localhost"}).status_code == 200


def test_other_hosts_are_redirected_to_https_and_https_is_served(over_https: None) -> None:
    assert Client().get("/login/").status_code == 301
    assert Client().get("/login/", secure=True, headers={"host": "localhost"}).status_code == 200
