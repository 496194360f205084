"""Tests of grants with an end: how they are given on the page, and until when it says that they last."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from tests.web import acting
from toolbelt.control.access import expirations, switches
from toolbelt.control.reports import queries
from toolbelt.runtime import calls
from toolbelt.store import clock
from toolbelt.testing import OPERATOR
from toolbelt.web.kit import periods, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def overrides() -> dict[str, bool]:
    """Return what is set for ada now and was not when the test began."""
    return {key: on for key, on in acting.stored().overrides.items() if key != "clock__now"}


@pytest.mark.parametrize("htmx", [True, False])
def test_a_button_gives_a_tool_for_two_hours_whatever_the_radios_say(operator: Client, htmx: bool) -> None:
    answer = acting.override(operator, "papers", "unset", "unset", given="true-2h", htmx=htmx)

    assert answer.status_code == (200 if htmx else 303)
    end = acting.stored().ends["papers"]
    assert (
        dt.timedelta(hours=2)
        <= end.at - timezone.now() + dt.timedelta(minutes=1)
        <= dt.timedelta(hours=2, minutes=2)
    )
    assert (end.then, end.by) == (None, "olive")
    row = acting.text(operator.get("/agents/ada/?q=papers"))
    assert "until " in row
    assert "left" in row


def test_a_moment_can_be_typed_and_is_in_the_zone_of_the_server(operator: Client) -> None:
    acting.switch(operator, "releases", "true", "unset", given="false-at", at="2099-01-02T03:04")
    moment = dt.datetime(2099, 1, 2, 3, 4, tzinfo=timezone.get_current_timezone())
    assert acting.stored().ends["releases"].at == moment


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"given": "true-at"}, "Enter an end time"),
        ({"given": "true-at", "at": "2001-01-02T03:04"}, "is in the past"),
        ({"given": "true-9h"}, "given"),
    ],
)
def test_an_end_that_cannot_be_is_said(operator: Client, sent: dict[str, str], said: str) -> None:
    answer = acting.override(operator, "papers", "unset", "unset", **sent)
    assert answer.status_code == 422
    assert said in acting.text(answer)
    assert overrides() == {}


def test_a_question_keeps_for_how_long_it_was_asked(operator: Client) -> None:
    answer = acting.override(operator, "github__merge", "unset", "unset", given="true-1h")
    kept = dict(answer.context["confirmation"].fields)
    assert kept["given"] == "true-1h"
    acting.post(operator, "/agents/ada/overrides/github__merge/", **kept)
    assert "github__merge" in acting.stored().ends


def test_the_log_tells_of_the_end_and_offers_no_undo_for_it(operator: Client) -> None:
    moment = timezone.now() + dt.timedelta(hours=1)
    switches.override(OPERATOR, "ada", "papers", True, ends=moment)
    with clock.stopped(moment):
        expirations.write_due()
    page = operator.get("/agents/ada/history/").context["page"]
    ended, given = (entry for day in page.days for entry in day.entries if entry.subject == "papers")
    assert (ended.who, ended.did, ended.undoable) == ("Toolbelt", "ended the override of", False)
    assert given.differences[0].after.startswith("on until ")


@pytest.mark.parametrize("address", ["/agents/ada/history/", "/audit/"])
def test_the_log_tells_of_an_end_that_nobody_has_written_yet(operator: Client, address: str) -> None:
    moment = timezone.now().replace(microsecond=0) + dt.timedelta(hours=1)
    switches.override(OPERATOR, "ada", "papers", True, ends=moment)
    before = queries.changes().total
    with clock.stopped(moment):
        page = operator.get(address).context["page"]
        html = acting.text(operator.get(address))
        narrowed = operator.get(address, {"person": "olive"}).context["page"]
        later = operator.get(
            address, {"since": (timezone.localdate(moment) + dt.timedelta(days=1)).isoformat()}
        )

    waiting, given = (entry for day in page.days for entry in day.entries if entry.subject == "papers")
    assert (waiting.who, waiting.did, waiting.undoable) == ("Toolbelt", "ended the override of", False)
    assert (
        waiting.waits
        == f"Ended at {words.clock(moment).words}; the audit log records it with the next change."
    )
    assert waiting.waits in html
    assert page.matches.endswith("1 ended setting not yet logged")
    assert given.waits == ""
    for other in (narrowed, later.context["page"]):
        assert not [entry for day in other.days for entry in day.entries if entry.waits]
    assert queries.changes().total == before, "to look writes nothing"


def test_an_end_that_is_written_is_told_once(operator: Client) -> None:
    moment = timezone.now() + dt.timedelta(hours=1)
    switches.override(OPERATOR, "ada", "papers", True, ends=moment)
    with clock.stopped(moment + dt.timedelta(hours=1)):
        switches.flip(OPERATOR, "ada", "releases", False)
        page = operator.get("/agents/ada/history/").context["page"]
    told = [entry for day in page.days for entry in day.entries if entry.did == "ended the override of"]
    assert [(entry.waits, bool(entry.id)) for entry in told] == [("", True)]


def test_undoing_when_it_is_over_asks_with_what_is_so_now(operator: Client) -> None:
    moment = timezone.now() + dt.timedelta(hours=1)
    given = switches.override(OPERATOR, "ada", "papers", True, ends=moment)
    with clock.stopped(moment):
        answer = acting.post(operator, f"/audit/{given.entry}/undo/")
        assert answer.status_code == 409
        assert "Not undone" in acting.text(answer)


def test_the_menu_says_what_each_state_would_change_and_for_whom(operator: Client) -> None:
    calls.run("ada", "list_toolkits", {}, session="s1")
    for htmx in ({}, acting.HTMX):
        answer = operator.get("/agents/ada/effect/issues/", headers=htmx)
        (_, on), (_, off), (unset, _) = answer.context["page"].lines
        assert (on, off.tools) == (None, -2)
        html = acting.text(answer)
        assert "current setting" in html
        assert "1 live session; the tools and the system text change, which resets its prompt cache" in html
        assert unset == "Default"
    assert operator.get("/agents/ada/effect/nothing/").status_code == 404
    assert operator.get("/agents/nobody/effect/issues/").status_code == 404


def test_a_block_from_the_menu_applies_at_once_and_the_page_shows_it(admin_client: Client) -> None:
    answer = acting.post(
        admin_client,
        "/tools/github__issue_read/block/",
        from_agent="ada",
        on="unset",
        was="unset",
        tools="github__issue_read",
    )
    assert "blocked for everyone" in acting.text(answer)
    assert "can no longer use it" in acting.text(answer)


def test_spans_end_at_full_minutes_and_tomorrow_begins_at_midnight() -> None:
    assert periods.end("1h").second == 0
    assert timezone.localtime(periods.end("tomorrow")).strftime("%H:%M:%S") == "00:00:00"


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (dt.timedelta(seconds=30), "less than a minute left"),
        (dt.timedelta(minutes=52, seconds=9), "52 min left"),
        (dt.timedelta(hours=1, minutes=52, seconds=9), "1 h 52 min left"),
        (dt.timedelta(hours=2, seconds=9), "2 h left"),
        (dt.timedelta(days=3, hours=4, seconds=9), "3 d 4 h left"),
    ],
)
def test_what_is_left_is_said_in_two_numbers_at_most(ahead: dt.timedelta, said: str) -> None:
    assert words.time_left(timezone.now() + ahead) == said
