"""Tests of the endpoints for load balancers and scrapers, and of response headers."""

from typing import NoReturn

import pytest
from django import test
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection
from django.db.migrations import recorder
from django.test.utils import CaptureQueriesContext

from toolbelt.web.kit import health

TOKEN = "a-token-of-some-length"


@pytest.fixture(autouse=True)
def clear_migration_state() -> None:
    """Start each test in the state of a new process."""
    health.migrated.clear()


def test_healthz_answers_without_the_database(client: test.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_is_ready_if_all_migrations_are_applied(client: test.Client) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_readyz_is_not_ready_if_a_migration_is_missing(client: test.Client) -> None:
    recorder.MigrationRecorder(connection).record_unapplied("sessions", "0001_initial")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["because"]) == (503, "pending migrations: 1")


@pytest.mark.django_db
def test_migrations_are_checked_until_none_is_missing(client: test.Client) -> None:
    applied = recorder.MigrationRecorder(connection)
    applied.record_unapplied("sessions", "0001_initial")
    assert client.get("/readyz").status_code == 503
    applied.record_applied("sessions", "0001_initial")
    assert client.get("/readyz").status_code == 200
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/readyz").status_code == 200
    assert [query["sql"] for query in queries] == ["SELECT 1"]


@pytest.mark.django_db
@pytest.mark.parametrize("was_ready", [False, True])
def test_readyz_is_not_ready_without_the_database(client: test.Client, was_ready: bool) -> None:
    def refuse(*args: object) -> NoReturn:
        raise OperationalError

    if was_ready:
        assert client.get("/readyz").status_code == 200

    with connection.execute_wrapper(refuse):
        answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["because"]) == (503, "the database does not respond")


@pytest.mark.django_db
def test_metrics_require_a_staff_user(client: test.Client) -> None:
    make = get_user_model().objects.create_user
    assert client.get("/metrics").status_code == 401
    client.force_login(make("reader"))
    assert client.get("/metrics").status_code == 401
    client.force_login(make("staff", is_staff=True))
    assert b"django_http_requests_total" in client.get("/metrics").content


@pytest.mark.parametrize(
    ("header", "status"), [(f"Bearer {TOKEN}", 200), ("Bearer another", 401), (f"Basic {TOKEN}", 401)]
)
def test_metrics_accept_the_configured_token(client: test.Client, settings, header, status) -> None:
    settings.TOOLBELT_METRICS_TOKEN = TOKEN
    assert client.get("/metrics", headers={"authorization": header}).status_code == status


def test_an_empty_metrics_token_is_refused_if_none_is_configured(client: test.Client) -> None:
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 401


def test_every_response_has_a_unique_request_id(client: test.Client) -> None:
    first, second = (client.get("/healthz").headers["X-Request-ID"] for _ in range(2))
    assert first != second


def test_the_content_security_policy_is_strict(client: test.Client) -> None:
    policy = client.get("/healthz").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_the_findings_of_readyz_need_staff_or_the_token(client: test.Client, settings) -> None:
    settings.TOOLBELT_METRICS_TOKEN = TOKEN
    assert client.get("/readyz?full").status_code == 401
    client.force_login(get_user_model().objects.create_user("viewer"))
    assert client.get("/readyz?full").status_code == 401
    answer = client.get("/readyz?full", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.json() == {"status": "ok", "findings": []}
