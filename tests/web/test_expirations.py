"""Tests of switches and overrides that expire: how they are set, shown, logged and undone."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from tests.web import dashboard
from toolbelt.control.access import expirations, switches
from toolbelt.control.reports import queries
from toolbelt.runtime import calls
from toolbelt.store import clock
from toolbelt.testing import OPERATOR
from toolbelt.web.kit import periods, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def overrides() -> dict[str, bool]:
    """Return the overrides of ada without the initial one."""
    return {key: on for key, on in dashboard.stored_agent().overrides.items() if key != "clock__now"}


@pytest.mark.parametrize("htmx", [True, False])
def test_a_two_hour_button_takes_precedence_over_the_radio_buttons(operator: Client, htmx: bool) -> None:
    response = dashboard.override(operator, "papers", "unset", "unset", given="true-2h", htmx=htmx)

    assert response.status_code == (200 if htmx else 303)
    end = dashboard.stored_agent().ends["papers"]
    assert (
        dt.timedelta(hours=2)
        <= end.at - timezone.now() + dt.timedelta(minutes=1)
        <= dt.timedelta(hours=2, minutes=2)
    )
    assert (end.then, end.by) == (None, "olive")
    row = dashboard.text(operator.get("/agents/ada/?q=papers"))
    assert "until " in row
    assert "left" in row


def test_an_entered_end_time_is_in_the_servers_time_zone(operator: Client) -> None:
    dashboard.switch(operator, "releases", "true", "unset", given="false-at", at="2099-01-02T03:04")
    moment = dt.datetime(2099, 1, 2, 3, 4, tzinfo=timezone.get_current_timezone())
    assert dashboard.stored_agent().ends["releases"].at == moment


def test_the_zone_beside_an_end_time_is_named_so_that_it_holds_for_any_date(operator: Client) -> None:
    # What now is called, such as EST in winter, would be wrong for a date in July.
    operator.cookies["toolbelt-zone"] = "America%2FNew_York"
    response = operator.get("/agents/ada/effect/papers/")
    assert ">America/New_York</span></label>" in dashboard.text(response)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"given": "true-at"}, "Enter an end time"),
        ({"given": "true-at", "at": "2001-01-02T03:04"}, "is in the past"),
        ({"given": "true-9h"}, "given"),
    ],
)
def test_an_invalid_end_time_is_rejected(operator: Client, sent: dict[str, str], message: str) -> None:
    response = dashboard.override(operator, "papers", "unset", "unset", **sent)
    assert response.status_code == 422
    assert message in dashboard.text(response)
    assert overrides() == {}


def test_the_confirmation_keeps_the_requested_duration(operator: Client) -> None:
    response = dashboard.override(operator, "github__merge", "unset", "unset", given="true-1h")
    fields = dict(response.context["confirmation"].fields)
    assert fields["given"] == "true-1h"
    dashboard.post(operator, "/agents/ada/overrides/github__merge/", **fields)
    assert "github__merge" in dashboard.stored_agent().ends


def test_a_logged_expiration_cannot_be_undone(operator: Client) -> None:
    moment = timezone.now() + dt.timedelta(hours=1)
    switches.override(OPERATOR, "ada", "papers", True, ends=moment)
    with clock.stopped(moment):
        expirations.record_due()
    page = operator.get("/agents/ada/history/").context["page"]
    ended, given = (entry for day in page.days for entry in day.entries if entry.subject == "papers")
    assert (ended.who, ended.action, ended.undoable) == ("Toolbelt", "ended the override of", False)
    assert given.differences[0].after.startswith("on until ")


@pytest.mark.parametrize("address", ["/agents/ada/history/", "/audit/"])
def test_an_expiration_is_shown_before_it_is_logged(operator: Client, address: str) -> None:
    moment = timezone.now().replace(microsecond=0) + dt.timedelta(hours=1)
    switches.override(OPERATOR, "ada", "papers", True, ends=moment)
    before = queries.changes().total
    with clock.stopped(moment):
        page = operator.get(address).context["page"]
        html = dashboard.text(operator.get(address))
        narrowed = operator.get(address, {"person": "olive"}).context["page"]
        later = operator.get(
            address, {"since": (timezone.localdate(moment) + dt.timedelta(days=1)).isoformat()}
        )

    waiting, given = (entry for day in page.days for entry in day.entries if entry.subject == "papers")
    assert (waiting.who, waiting.action, waiting.undoable) == ("Toolbelt", "ended the override of", False)
    ended = f"Ended at {timezone.localtime(moment):%H:%M}; the audit log records it with the next change."
    assert html.count(ended) == 1
    assert page.matches.endswith("1 ended setting not yet logged")
    assert (waiting.id, bool(given.id)) == (0, True)
    for other in (narrowed, later.context["page"]):
        assert not [entry for day in other.days for entry in day.entries if not entry.id]
    assert queries.changes().total == before, "opening the page stores nothing"


def test_a_logged_expiration_is_shown_once(operator: Client) -> None:
    moment = timezone.now() + dt.timedelta(hours=1)
    switches.override(OPERATOR, "ada", "papers", True, ends=moment)
    with clock.stopped(moment + dt.timedelta(hours=1)):
        switches.flip(OPERATOR, "ada", "releases", False)
        page = operator.get("/agents/ada/history/").context["page"]
    expired = [entry for day in page.days for entry in day.entries if entry.action == "ended the override of"]
    assert [bool(entry.id) for entry in expired] == [True]


def test_undoing_an_expired_override_is_refused(operator: Client) -> None:
    moment = timezone.now() + dt.timedelta(hours=1)
    given = switches.override(OPERATOR, "ada", "papers", True, ends=moment)
    with clock.stopped(moment):
        response = dashboard.post(operator, f"/audit/{given.entry}/undo/")
        assert response.status_code == 409
        assert "Not undone" in dashboard.text(response)


def test_the_menu_shows_the_effect_of_each_state(operator: Client) -> None:
    calls.run("ada", "list_toolkits", {}, session="s1")
    for htmx in ({}, dashboard.HTMX):
        response = operator.get("/agents/ada/effect/issues/", headers=htmx)
        (_, on, _), (_, off, _), (unset, _, _) = response.context["page"].lines
        assert (on, off.tools) == (None, -2)
        html = dashboard.text(response)
        assert "current setting" in html
        assert "1 live conversation: 1 rewrites; the tools and the system text change" in html
        assert "which resets its prompt cache" in html
        assert unset == "Default"
    assert operator.get("/agents/ada/effect/nothing/").status_code == 404
    assert operator.get("/agents/nobody/effect/issues/").status_code == 404


def test_blocking_from_the_menu_applies_immediately_and_updates_the_page(admin_client: Client) -> None:
    response = dashboard.post(
        admin_client,
        "/tools/github__issue_read/block/",
        from_agent="ada",
        on="unset",
        was="unset",
        tools="github__issue_read",
    )
    assert "blocked for everyone" in dashboard.text(response)
    assert "can no longer use it" in dashboard.text(response)


def test_durations_end_at_full_minutes_and_tomorrow_starts_at_midnight() -> None:
    assert periods.end("1h").second == 0
    assert timezone.localtime(periods.end("tomorrow")).strftime("%H:%M:%S") == "00:00:00"


@pytest.mark.parametrize(
    ("ahead", "message"),
    [
        (dt.timedelta(seconds=30), "less than a minute left"),
        (dt.timedelta(minutes=52, seconds=9), "52 min left"),
        (dt.timedelta(hours=1, minutes=52, seconds=9), "1 h 52 min left"),
        (dt.timedelta(hours=2, seconds=9), "2 h left"),
        (dt.timedelta(days=3, hours=4, seconds=9), "3 d 4 h left"),
    ],
)
def test_the_remaining_time_has_at_most_two_units(ahead: dt.timedelta, message: str) -> None:
    assert words.time_left(timezone.now() + ahead) == message
