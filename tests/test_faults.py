"""Tests that every interface quickly reports an unavailable database, and when to retry."""

from __future__ import annotations

import datetime as dt
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django import db
from django.contrib.auth import models as logins
from django.test import Client

from tests import breaking, fast_fixtures
from tests.api.conftest import BELT, SETUP, Asking, of_operator
from tests.breaking import Database
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.core import api_tokens
from toolbelt.runtime import surfaces
from toolbelt.store import clock, holds

pytestmark = pytest.mark.django_db(transaction=True)
# Answers take up to 5 s, with some reserve for a loaded machine.
SOON = 8.0


@pytest.fixture
def stored(transactional_db: None) -> None:
    fast_fixtures.stored("api", lambda: belts.import_(SETUP, BELT))


@pytest.fixture
def database(stored: None) -> Iterator[Database]:
    with breaking.breakable() as breakable_database:
        yield breakable_database


@pytest.fixture
def ada(stored: None) -> Asking:
    return quiet(Asking(tokens.issue(SETUP, agent="ada").text))


@pytest.fixture
def olga(stored: None) -> Asking:
    return quiet(Asking(of_operator("olga", superuser=True)))


@pytest.fixture
def olive(stored: None) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(logins.User.objects.create_superuser("olive"))
    return client


def quiet(asking: Asking) -> Asking:
    asking._client.raise_request_exception = False
    return asking


def flip(asking: Asking) -> Any:
    return asking.put("/agents/bob/switches/reading", {"on": False, "confirm": True})


def problem_of(answer: Any) -> tuple[int, str]:
    assert answer.headers["Content-Type"].startswith("application/problem+json"), answer.content
    assert int(answer.headers["Retry-After"]) > 0
    return answer.status_code, answer.json()["code"]


def test_the_api_reports_that_the_database_is_unavailable(database, ada, olga):
    with database.away():
        start = time.monotonic()
        answer = ada.get("/agents/ada/surface")
        assert time.monotonic() - start < SOON
        assert problem_of(answer) == (503, "database-unavailable")
        assert problem_of(flip(olga)) == (503, "database-unavailable")
    assert ada.get("/agents/ada/surface").status_code == 200


def test_a_browser_gets_an_error_page_without_the_database(database, olive):
    with database.away():
        start = time.monotonic()
        answer = olive.get("/agents/")
        assert time.monotonic() - start < SOON
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "<h1>Toolbelt is unavailable</h1>" in answer.content.decode()
    assert "The database" in answer.content.decode()
    assert answer.headers["X-Request-ID"] in answer.content.decode()


def test_an_htmx_request_gets_the_reason_as_plain_text(database, olive):
    with database.away():
        answer = olive.get("/agents/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["Toolbelt-Unavailable"]) == (503, "database-unavailable")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.content.decode().startswith("The database")


def test_an_unknown_url_is_answered_quickly_without_the_database(database, olive):
    with database.away():
        start = time.monotonic()
        answer = olive.get("/nowhere/")
        assert time.monotonic() - start < SOON
    assert answer.status_code == 503


def test_a_database_fault_is_logged_in_one_line(database, olive, caplog):
    with database.away(), caplog.at_level("INFO"):
        olive.get("/agents/")
    assert [record.exc_info for record in caplog.records if record.exc_info] == []
    about = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert [line["code"] for line in about if line.get("event") == "request_finished"] == [503]


def test_health_probes_are_answered_quickly_without_the_database(database, client):
    with database.away():
        start = time.monotonic()
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
        assert time.monotonic() - start < SOON


@breaking.ON_SQLITE
def test_a_write_to_a_locked_database_is_refused_as_busy(database, olga):
    with database.locked(db.connection.settings_dict["OPTIONS"]["timeout"]):
        start = time.monotonic()
        answer = flip(olga)
        assert time.monotonic() - start < SOON
        assert problem_of(answer) == (503, "database-busy")
    assert flip(olga).status_code == 200


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Try to store what is held only when the test says so."""
    monkeypatch.setattr(holds, "_keep_storing", lambda retry_seconds: None)
    yield
    holds.forget()


def block(asking: Asking, value: bool | None = True) -> Any:
    return asking.patch("/tools/clock", {"changes": {"blocked": value}})


def refusal_of_a_call(asking: Asking) -> str:
    answer = asking.post("/agents/ada/calls", {"tool": "clock", "arguments": {}}).json()
    return str(answer["code"])


@breaking.ON_SQLITE
@pytest.mark.parametrize("fault", ["locked", "read_only"])
def test_a_stop_that_cannot_be_stored_holds_in_its_process_until_it_can_be(
    database, ada, olga, holding, fault
):
    assert refusal_of_a_call(ada) == "tool-unavailable"  # no process of this test runs it
    with getattr(database, fault)():
        answer = block(olga)
        assert answer.status_code == 503
        assert answer.json()["stored"] is False
        assert "The tool clock is blocked in this process of Toolbelt only" in answer.json()["detail"]
        holds.store_all()
        assert holds.any_held()
        assert refusal_of_a_call(ada) == "tool-denied"
    assert not models.Tool.objects.get(key="clock").blocked
    holds.store_all()
    assert models.Tool.objects.get(key="clock").blocked
    assert not holds.any_held()
    assert refusal_of_a_call(ada) == "tool-denied"


@breaking.ON_SQLITE
@pytest.mark.parametrize("over", ["/plugins/base", "/toolkits/telling"])
def test_a_held_stop_covers_what_is_under_it(database, ada, olga, holding, over):
    belts.import_(SETUP, {"toolkits": [{"key": "telling", "members": ["clock"]}]})
    with database.locked():
        assert olga.patch(over, {"changes": {"blocked": True}}).json()["stored"] is False
        assert refusal_of_a_call(ada) == "tool-denied"


@breaking.ON_SQLITE
def test_each_stop_of_several_is_held(database, ada, holding, admin_client):
    kit = {"key": "telling", "members": ["clock"]}
    belts.import_(SETUP, {"toolkits": [kit, {**kit, "key": "showing"}]})
    selected = [*models.Toolkit.objects.values_list("pk", flat=True)]
    with database.locked():
        admin_client.post("/admin/toolbelt/toolkit/", {"action": "block", "_selected_action": selected})
        assert refusal_of_a_call(ada) == "tool-denied"
    holds.store_all()
    assert models.Toolkit.objects.filter(blocked=True).count() == len(selected)


@breaking.ON_SQLITE
def test_a_held_stop_ends_if_it_is_withdrawn(database, ada, olga, holding):
    with database.locked():
        block(olga)
        assert refusal_of_a_call(ada) == "tool-denied"
        assert block(olga, None).status_code == 503
        assert refusal_of_a_call(ada) == "tool-unavailable"
    assert not holds.any_held()


@breaking.ON_SQLITE
@pytest.mark.parametrize("is_storable", [True, False])
def test_a_held_stop_with_an_end_ends_by_the_clock_and_is_not_stored_afterwards(
    database, ada, olga, holding, is_storable
):
    """Whether it can be stored when its end passes, or still cannot."""
    ends = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(hours=1)
    changes = {"blocked": True, "block_ends": ends.isoformat().replace("+00:00", "Z")}
    with database.locked():
        assert olga.patch("/tools/clock", {"changes": changes}).json()["stored"] is False
        assert refusal_of_a_call(ada) == "tool-denied"
        with clock.stopped(ends - dt.timedelta(seconds=1)):
            assert refusal_of_a_call(ada) == "tool-denied"
        with clock.stopped(ends):
            assert refusal_of_a_call(ada) == "tool-unavailable"
            if not is_storable:
                holds.store_all()
                assert refusal_of_a_call(ada) == "tool-unavailable"
    with clock.stopped(ends):
        holds.store_all()
        assert not holds.any_held()
    assert not models.Tool.objects.get(key="clock").blocked
    assert refusal_of_a_call(ada) == "tool-unavailable"


@breaking.ON_SQLITE
def test_a_held_stop_with_an_end_is_stored_with_it(database, ada, olga, holding):
    ends = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(hours=1)
    changes = {"blocked": True, "block_ends": ends.isoformat().replace("+00:00", "Z")}
    with database.locked():
        olga.patch("/tools/clock", {"changes": changes})
    holds.store_all()
    assert models.Tool.objects.get(key="clock").block_ends == ends
    assert refusal_of_a_call(ada) == "tool-denied"
    with clock.stopped(ends):
        assert refusal_of_a_call(ada) == "tool-unavailable"


@breaking.ON_SQLITE
def test_only_a_stop_of_something_that_exists_is_held(database, olga, holding):
    with database.locked():
        olga.patch("/tools/nonsense", {"changes": {"blocked": True}})
        olga.patch("/tools/clock", {"changes": {"title": "Time"}})
        assert not holds.any_held()


@breaking.ON_SQLITE
def test_the_dashboard_says_that_a_stop_is_not_stored(database, olive, holding):
    with database.locked():
        page = olive.post("/tools/clock/block/", {"on": "true", "was": "false"})
        script = olive.post(
            "/tools/clock/block/", {"on": "true", "was": "false"}, headers={"HX-Request": "true"}
        )
    assert (page.status_code, script.status_code) == (503, 503)
    assert "Blocked, but not stored yet" in page.content.decode()
    assert script.content.decode().startswith("The tool clock is blocked in this process of Toolbelt only")


@breaking.ON_SQLITE
def test_a_write_to_a_full_database_is_refused_as_storage_full(database, olga):
    with database.full():
        # Larger than the free space in the existing pages.
        answer = olga.patch("/toolkits/reading", {"changes": {"policy": "Look. " * 50_000}})
        assert problem_of(answer) == (507, "storage-full")
        assert olga.get("/agents/ada/surface").status_code == 200
    assert flip(olga).status_code == 200


def test_a_read_only_database_refuses_writes_and_answers_reads(database, olga):
    with database.read_only():
        assert problem_of(flip(olga)) == (503, "database-read-only")
        assert olga.get("/agents/ada/surface").status_code == 200
    assert flip(olga).status_code == 200


def test_a_call_without_the_database_is_refused_with_a_message(database, ada, olga):
    call = {"tool": "clock", "arguments": {}}
    ada.get("/agents/ada/surface")
    with database.away():
        answer = ada.post("/agents/ada/calls", call)
        assert (answer.status_code, answer.json()["is_error"]) == (200, True)
        assert answer.json()["code"] == "tool-unavailable"
        assert "cannot be checked" in answer.json()["message"]
        # Calls of another agent or with an unknown token fail like other requests.
        assert problem_of(ada.post("/agents/bob/calls", call)) == (503, "database-unavailable")
        stranger = quiet(Asking(api_tokens.make(secrets.choice)))
        assert problem_of(stranger.post("/agents/ada/calls", call)) == (503, "database-unavailable")


@breaking.ON_POSTGRESQL
def test_a_read_over_a_cut_connection_is_retried(database):
    before = surfaces.ask("ada")
    database.proxy.cut()
    assert surfaces.ask("ada") == before


@breaking.ON_POSTGRESQL
def test_a_cut_connection_fails_a_transaction_without_repeating_it(database):
    count = models.Category.objects.count()

    @db.transaction.atomic
    def write() -> None:
        models.Category.objects.create(name="one")
        database.proxy.cut()
        models.Category.objects.count()

    with pytest.raises(db.OperationalError):
        write()
    db.connection.close()
    assert models.Category.objects.count() == count


@breaking.ON_POSTGRESQL
def test_a_write_is_not_sent_twice_over_a_cut_connection(database):
    models.Category.objects.count()
    database.proxy.cut()
    opened = database.proxy.connections
    with pytest.raises(db.OperationalError):
        models.Category.objects.filter(name="nobody").update(name="somebody")
    assert database.proxy.connections == opened
