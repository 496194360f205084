"""Tests that requests to a host that is not configured get a page and a log entry that name the setting."""

from __future__ import annotations

from typing import Any

import pytest
import structlog
from django.test import Client

from toolbelt.web.kit import unconfigured

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def reset_logged_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unconfigured, "_logged", {})


def test_a_disallowed_host_gets_a_page_naming_the_setting() -> None:
    with structlog.testing.capture_logs() as logs:
        response = Client().get("/login/", headers={"host": "box.local:8000"})
        Client().get("/login/", headers={"host": "box.local:8000"})
    assert response.status_code == 400
    assert "ALLOWED_HOSTS=…,box.local" in response.content.decode()
    # A repetition within a minute is not logged.
    events = [(log["event"], log.get("host"), log.get("setting")) for log in logs if "setting" in log]
    assert events == [("host not allowed", "box.local:8000", "ALLOWED_HOSTS")]


@pytest.mark.parametrize("host", ["<script>", "a b", "x" * 5000, ""])
def test_an_invalid_host_is_not_echoed(host: str) -> None:
    response = Client().get("/login/", headers={"host": host} if host else {})
    assert "<script>" not in response.content.decode().partition("<h1>")[2]
    if host:
        assert response.status_code == 400


@pytest.fixture
def over_https(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000"])
def test_plain_http_on_localhost_gets_a_page_naming_the_setting(over_https: None, host: str) -> None:
    with structlog.testing.capture_logs() as logs:
        response = Client().get("/", headers={"host": host})
    assert response.status_code == 400
    assert "TOOLBELT_INSECURE_HTTP=on" in response.content.decode()
    assert "default-src" in response.headers["Content-Security-Policy"]
    assert [log["setting"] for log in logs if "setting" in log] == ["TOOLBELT_INSECURE_HTTP"]


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
