"""Tests of the call log: its filters, its totals, its charts, and its export."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from functools import partial
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.web import asking, dashboard
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.core import outcomes
from toolbelt.store import call_records as stored_calls
from toolbelt.web.call_log import views as calls
from toolbelt.web.kit import call_outcomes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def open_page(browser: Client, **query: Any) -> Any:
    return browser.get("/calls/", query).context["page"]


def log(browser: Client, **query: Any) -> Any:
    return open_page(browser, view="log", **query)


def test_every_outcome_has_words() -> None:
    assert call_outcomes.OUTCOMES.keys() == {*outcomes.STORED, outcomes.UNREPORTED}


def test_the_call_log_and_its_menu_entry_require_permission(viewer: Client, call_viewer: Client) -> None:
    assert viewer.get("/calls/").status_code == 403
    assert "/calls/" not in dashboard.text(viewer.get("/agents/"))
    assert '<a href="/calls/" aria-current="page">' in dashboard.text(call_viewer.get("/calls/"))


def test_the_error_filter_matches_refused_and_failed_calls(call_viewer: Client) -> None:
    for outcome in ("ok", "cancelled", "tool-failed", "tool-denied"):
        factories.call(outcome=outcome)
    assert [call.outcome for call in log(call_viewer, outcome="error").calls] == ["refused", "failed"]
    assert open_page(call_viewer, outcome="error").matches == "2 calls, 2 errors"
    assert "/calls/?view=log&amp;outcome=error&amp;period=30d" in dashboard.text(call_viewer.get("/"))


def test_a_log_row_shows_the_caller_tool_and_outcome(call_viewer: Client) -> None:
    factories.call(
        session="s1", outcome="tool-failed", error="It broke.", arguments_bytes=20, result_bytes=1500
    )
    (call,) = log(call_viewer).calls
    assert (call.state, call.outcome) == ("unavailable", "failed")
    html = dashboard.text(call_viewer.get("/calls/?view=log"))
    assert '<a href="/tools/shell/"><code>shell</code></a>' in html
    assert '<a href="/agents/ada/">ada</a>' in html
    assert '<a href="/calls/?view=log&amp;agent=ada&amp;session=s1">s1</a>' in html
    assert '<p class="call-error" dir="auto">It broke.' in html
    assert '120 ms <span class="quiet">20 bytes in, 1.5 KB out</span>' in html


def test_a_session_links_to_its_calls_in_the_period(call_viewer: Client) -> None:
    factories.call(session="s1", days_ago=1)
    factories.call(session="s1", outcome="tool-failed")
    factories.call(session="s2")
    factories.call(agent="bob", session="s1")
    page = log(call_viewer, period="7d")
    assert page.calls[2].session_url == "/calls/?view=log&agent=ada&session=s1&period=7d"
    page = call_viewer.get(page.calls[2].session_url).context["page"]
    assert [(line.call.agent, line.call.session) for line in page.calls] == [("ada", "s1")] * 2
    assert page.matches == "2 calls, newest first"
    html = dashboard.text(call_viewer.get("/calls/?session=s1"))
    assert '<input type="checkbox" name="session" value="s1" autocomplete="off" checked>' in html
    assert "session=s1" in html.partition('id="downloads"')[2].partition("</p>")[0]


def test_deleted_agents_and_tools_are_shown_without_a_link(call_viewer: Client) -> None:
    factories.call("gone", agent="nobody", outcome="unknown-tool")
    (call,) = log(call_viewer).calls
    assert (call.agent_url, call.tool_url) == ("", "")
    assert 'href="/tools/gone/"' not in dashboard.text(call_viewer.get("/calls/"))
    factories.call("load_tools")
    assert [figure.mark for figure in open_page(call_viewer).usage.figures] == ["unknown", "Toolbelt's own"]


def test_figures_of_each_tool_are_relative_to_the_largest(call_viewer: Client) -> None:
    for duration in (100, 200):
        factories.call("shell", duration_ms=duration)
    for outcome in ("ok", "tool-failed", "tool-denied", "ok"):
        factories.call("papers", duration_ms=2000, outcome=outcome)
    page = open_page(call_viewer)
    papers, shell = page.usage.figures
    assert (papers.usage.tool, papers.usage.calls, papers.share, papers.usage.errors, papers.error_share) == (
        "papers",
        4,
        100,
        2,
        "50 %",
    )
    assert (shell.usage.calls, shell.share, shell.usage.median, shell.usage.slow, shell.slowness) == (
        2,
        50,
        100,
        200,
        10,
    )
    assert shell.calls_url == "/calls/?view=log&tool=shell"
    assert page.matches == "6 calls, 2 errors"


def test_a_long_list_of_figures_is_folded_and_can_be_expanded(call_viewer: Client) -> None:
    for number in range(20):
        factories.call(f"tool_{number}")
    page = open_page(call_viewer)
    assert (len(page.usage.figures), page.usage.every_url, page.usage.total) == (12, "/calls/?every=yes", 20)
    assert len(open_page(call_viewer, every="yes").usage.figures) == 20


def test_the_chart_has_a_bar_per_day_and_a_text_summary(call_viewer: Client) -> None:
    for days_ago in (0, 2, 2):
        factories.call(days_ago=days_ago)
    factories.call(days_ago=2, outcome="tool-failed")
    since = timezone.localdate() - dt.timedelta(days=3)
    response = call_viewer.get("/calls/", {"since": since.isoformat()})
    chart = response.context["page"].usage.chart
    assert [parts for _, _, parts in chart.bars] == [
        [],
        [("failed", 75, 25), ("good", 25, 50)],
        [],
        [("good", 75, 25)],
    ]
    assert chart.words.startswith("4 calls in 4 days, most on ")
    assert "3 calls, 0 refused, 1 failed</title>" in response.content.decode()
    assert chart.scale == ("4", "2", "0")
    days = [f"{timezone.localdate() - dt.timedelta(days=back):%-d %b}" for back in (3, 2, 1, 0)]
    assert re.findall(r'text-anchor="\w+">([^<]+)</text>', response.content.decode())[:4] == days


@pytest.mark.parametrize(
    ("zone", "day", "hours", "at", "name"),
    [
        ("UTC", "2026-03-03", 24, "2026-03-03T14:20Z", "14:00"),
        ("Asia/Tokyo", "2026-03-04", 24, "2026-03-03T23:30Z", "08:00"),
        ("Asia/Kathmandu", "2026-03-03", 24, "2026-03-03T00:00Z", "05:00"),
        ("Europe/Berlin", "2026-03-29", 23, "2026-03-29T01:30Z", "03:00 CEST"),
        ("Europe/Berlin", "2026-10-25", 25, "2026-10-25T00:30Z", "02:00 CEST"),
        ("Europe/Berlin", "2026-10-25", 25, "2026-10-25T01:30Z", "02:00 CET"),
        ("Australia/Lord_Howe", "2026-04-05", 25, "2026-04-05T12:10Z", "22:30 +1030"),
    ],
)
def test_a_single_day_has_a_bar_for_each_of_its_hours_in_the_readers_time_zone(
    call_viewer: Client, zone: str, day: str, hours: int, at: str, name: str
) -> None:
    call_viewer.cookies["toolbelt-zone"] = zone.replace("/", "%2F")
    models.CallRecord.objects.create(
        tool="shell", agent="ada", outcome="tool-failed", duration_ms=1, at=dt.datetime.fromisoformat(at)
    )
    chart = open_page(call_viewer, period="custom", since=day, until=day).usage.chart
    bars = [bar for _, bar, _ in chart.bars]
    assert chart.unit == "hour"
    assert len({bar.name for bar in bars}) == len(bars) == hours
    assert [(bar.name, bar.calls, bar.failed) for bar in bars if bar.calls] == [(name, 1, 1)]
    assert chart.words.endswith(f"most at {name}: 1")


def test_today_has_hours_below_its_chart_and_in_its_table(call_viewer: Client) -> None:
    call = factories.call()
    html = call_viewer.get("/calls/", {"period": "today"}).content.decode()
    assert "<h2>Calls by hour</h2>" in html
    assert re.findall(r'text-anchor="start">([^<]+)</text>', html)[:4] == ["00:00", "06:00", "12:00", "18:00"]
    assert f">{timezone.localtime(call.at):%H}:00</a></th>" in html
    assert open_page(call_viewer, period="7d").usage.chart.unit == "day"


def test_the_log_is_filtered_by_query_parameters(call_viewer: Client) -> None:
    factories.call("shell")
    factories.call("papers", agent="bob", outcome="tool-denied")
    factories.call("shell", days_ago=40)
    today = timezone.localdate()
    long_ago = (today - dt.timedelta(days=60)).isoformat()
    for query, count in (
        ({}, 2),
        ({"agent": "bob"}, 1),
        ({"tool": "shell"}, 1),
        ({"outcome": "tool-denied"}, 1),
        ({"agent": "ada", "outcome": "tool-denied"}, 0),
        ({"since": long_ago}, 3),
        ({"since": long_ago, "until": (today - dt.timedelta(days=10)).isoformat()}, 1),
        ({"until": today.isoformat()}, 2),
        ({"since": "nonsense", "older": "x"}, 2),
    ):
        assert len(log(call_viewer, **query).calls) == count, query


@pytest.mark.parametrize(("most", "days"), [(4, 30), (3, 7), (2, 1), (0, 1)])
def test_the_default_period_is_shortened_if_there_are_too_many_calls(
    call_viewer: Client, monkeypatch: pytest.MonkeyPatch, most: int, days: int
) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", most)
    for days_ago in (0, 1, 6, 29):
        factories.call(days_ago=days_ago)
    first = timezone.localdate() - dt.timedelta(days=days - 1)
    assert open_page(call_viewer).period.since == first
    requested = timezone.localdate() - dt.timedelta(days=40)
    assert open_page(call_viewer, since=requested.isoformat()).period.since == requested


@pytest.mark.parametrize(
    ("period", "days_ago"), [("today", [0]), ("yesterday", [1]), ("7d", [0, 1, 6]), ("30d", [0, 1, 6, 29])]
)
def test_each_preset_selects_its_range_of_days(call_viewer: Client, period: str, days_ago: list[int]) -> None:
    called = {factories.call(days_ago=back).pk: back for back in (0, 1, 6, 29, 30)}
    page = log(call_viewer, period=period)
    assert sorted(called[call.call.id] for call in page.calls) == days_ago
    assert [choice.value for choice in page.period.choices if choice.chosen] == [period]
    assert period in page.download_url


def test_a_preset_takes_precedence_over_custom_days(call_viewer: Client) -> None:
    factories.call(days_ago=3)
    day = (timezone.localdate() - dt.timedelta(days=3)).isoformat()
    assert len(log(call_viewer, period="today", since=day).calls) == 0
    page = log(call_viewer, since=day, until=day)
    assert len(page.calls) == 1
    assert [choice.value for choice in page.period.choices if choice.chosen] == ["custom"]
    assert [choice.value for choice in open_page(call_viewer).period.choices if choice.chosen] == ["30d"]


def test_chart_values_are_also_tables_that_link_to_each_day(call_viewer: Client) -> None:
    factories.call(agent="ada", days_ago=2)
    factories.call(agent="ada", days_ago=1)
    day = timezone.localdate() - dt.timedelta(days=2)
    html = call_viewer.get("/calls/?agent=ada").content.decode()
    address = f"/calls/?view=log&amp;agent=ada&amp;period=custom&amp;since={day}&amp;until={day}"
    assert f'<a href="{address}">{day:%A, %-d %B}</a>' in html
    assert len(call_viewer.get(address.replace("&amp;", "&")).context["page"].calls) == 1
    assert "Duration by day as a table" in html


def test_a_calls_page_shows_everything_recorded(call_viewer: Client) -> None:
    recorded: dict[str, Any] = {
        "session": "s1",
        "request_id": "req-7",
        "arguments_bytes": 20,
        "result_bytes": 1500,
        "revision": 3,
    }
    made = factories.call(
        outcome="tool-denied", reason="blocked", error="No.", arguments={"b": 1, "a": "<i>"}, **recorded
    )
    html = dashboard.text(call_viewer.get(f"/calls/{log(call_viewer).calls[0].call.id}/"))
    for text in (
        "s1",
        "req-7",
        "20 bytes",
        "1.5 KB",
        "120 ms",
        "Refused",
        "No.",
        "&lt;i&gt;",
        "<code>blocked</code>",
    ):
        assert text in html, text
    assert "<i>" not in html
    assert f"/agents/ada/preview/?view=why&amp;tool=shell&amp;at={made.at:%Y-%m-%d}" in html
    since = timezone.localdate(made.at) - dt.timedelta(days=1)
    assert f'href="/calls/?view=log&amp;agent=ada&amp;session=s1&amp;period=custom&amp;since={since}"' in html
    assert call_viewer.get("/calls/999999/").status_code == 404


def test_a_call_without_recorded_arguments_says_how_to_record_them(call_viewer: Client) -> None:
    made = factories.call("gone", agent="nobody")
    html = dashboard.text(call_viewer.get(f"/calls/{made.pk}/"))
    assert "TOOLBELT_RECORD_ARGUMENTS" in html
    assert "/preview/" not in html


def test_the_export_keeps_the_filters_and_escapes_formulas(call_viewer: Client) -> None:
    factories.call("papers", error='=cmd|"/c calc"!A1', arguments={"q": "x"})
    factories.call("shell")
    factories.call("papers", days_ago=40)
    response = call_viewer.get(open_page(call_viewer, tool="papers").download_url)
    assert response.streaming
    assert response.headers["Content-Disposition"].startswith('attachment; filename="calls-')
    (line,) = csv.DictReader(io.StringIO(b"".join(response).decode()))
    assert (line["tool"], line["agent"], line["duration_ms"]) == ("papers", "ada", "120")
    assert line["at"].endswith("+00:00")
    assert line["error"] == '\'=cmd|"/c calc"!A1'
    assert line["arguments"] == '{"q": "x"}'


def test_a_long_export_is_read_in_chunks(call_viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_calls, "READ_BATCH_SIZE", 2)
    for _ in range(5):
        factories.call()
    assert len(b"".join(call_viewer.get("/calls/download/")).splitlines()) == 6


def test_a_call_and_the_export_require_permission(viewer: Client) -> None:
    made = factories.call()
    assert viewer.get(f"/calls/{made.pk}/").status_code == 403
    assert viewer.get("/calls/download/").status_code == 403


def test_an_earlier_end_moves_the_default_start_back(call_viewer: Client) -> None:
    last = timezone.localdate() - dt.timedelta(days=60)
    assert open_page(call_viewer, until=last.isoformat()).period.since == last - dt.timedelta(days=29)


def test_the_log_is_paginated_and_pages_keep_the_filter(call_viewer: Client) -> None:
    last = [factories.call() for _ in range(31)][-1]
    page = log(call_viewer, agent="ada")
    assert (len(page.calls), page.pages.words, page.pages.newer_url) == (30, "30 of 31", "")
    assert page.pages.older_url == f"/calls/?view=log&agent=ada&older={last.pk - 29}"
    page = log(call_viewer, agent="ada", older=last.pk - 29)
    assert (len(page.calls), page.pages.older_url) == (1, "")
    assert page.pages.newer_url == "/calls/?view=log&agent=ada"


def test_durations_are_drawn_as_lines_by_day(call_viewer: Client) -> None:
    for days_ago, duration in ((0, 100), (2, 400), (2, 200)):
        factories.call(days_ago=days_ago, duration_ms=duration)
    assert open_page(call_viewer, since=timezone.localdate().isoformat()).usage.lines is None
    since = timezone.localdate() - dt.timedelta(days=3)
    response = call_viewer.get("/calls/", {"since": since.isoformat()})
    lines = response.context["page"].usage.lines
    assert (lines.median, lines.slow, lines.width) == ("12,50 36,75", "12,0 36,75", 36)
    assert lines.scale == ("400 ms", "200 ms", "0 ms")
    assert ": p50 200 ms, p95 400 ms</title>" in response.content.decode()


def test_an_htmx_filter_request_returns_everything_but_the_filter(call_viewer: Client) -> None:
    factories.call()
    html = dashboard.text(call_viewer.get("/calls/", {"agent": "ada"}, headers=dashboard.HTMX))
    assert '<p id="matches" hx-swap-oob="innerHTML">1 call</p>' in html
    assert 'id="filter"' not in html


def test_a_log_without_calls_shows_an_empty_state(call_viewer: Client) -> None:
    assert "No calls in this period" in dashboard.text(call_viewer.get("/calls/"))
    assert "No matching calls" in dashboard.text(call_viewer.get("/calls/", {"agent": "ada"}))


def test_hostile_texts_are_escaped(call_viewer: Client) -> None:
    evil = "<script>alert(1)</script>\u202e"
    factories.call(evil, agent=evil, session=evil, outcome="unknown-tool", error=evil)
    # Form fields keep their values unchanged, so that they can be submitted again.
    for address in ("/calls/", "/calls/?view=log"):
        html = re.sub('value="[^"]*"', "", call_viewer.get(address).content.decode())
        assert evil not in html
        assert "\u202e" not in html
        assert "&lt;script&gt;" in html


def test_query_counts_do_not_grow_with_calls_and_agents(call_viewer: Client) -> None:
    def query_counts() -> list[int]:
        return [dashboard.count_queries(partial(open_page, call_viewer, view=view)) for view in calls.TABS]

    factories.call()
    query_counts()
    before = query_counts()
    for number in range(40):
        factories.call(f"tool_{number}", days_ago=number % 7, agent=f"agent-{number}")
        factories.agent(f"agent-{number}")
    query_counts()
    assert query_counts() == before
    assert max(before) <= 24


def test_tabs_keep_the_filters_that_apply_to_them(call_viewer: Client) -> None:
    factories.call()
    usage, log, unused = open_page(call_viewer, agent="ada", tool="shell", period="7d").tabs
    assert (usage[1], usage[2]) == ("/calls/?agent=ada&tool=shell&period=7d", True)
    assert log[1] == "/calls/?view=log&agent=ada&tool=shell&period=7d"
    assert unused[1] == "/calls/?view=unused&agent=ada&period=7d"
    html = dashboard.text(call_viewer.get(log[1]))
    assert '<input type="hidden" name="view" value="log">' in html
    assert 'aria-current="page">Log</a>' in html


@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-20", "9999-12-31"])
@pytest.mark.parametrize("end", ["since", "until"])
def test_a_day_at_the_limits_of_the_calendar_is_ignored(call_viewer: Client, end: str, day: str) -> None:
    factories.call()
    assert len(log(call_viewer, **{end: day}).calls) == 1
    assert "1 new call" in dashboard.text(call_viewer.get("/calls/", {end: day, "newer": "0"}))


def test_only_a_call_of_a_tool_that_the_agent_did_not_have_links_to_why_it_did_not(
    call_viewer: Client,
) -> None:
    for outcome, reason in (
        ("tool-denied", "switch-off"),
        ("tool-withdrawn", "not-granted"),
        ("tool-failed", "always-on"),
        ("tool-unavailable", "default-on"),
        ("unknown-tool", ""),
    ):
        factories.call("shell", outcome=outcome, reason=reason)

    lacked = [line.call.outcome for line in log(call_viewer).calls if line.is_lacked]

    assert lacked == ["tool-withdrawn", "tool-denied"]


def test_the_page_of_a_call_says_who_approved_it(call_viewer: Client, olive: auth.User) -> None:
    waiting, ran = asking.ask({"amount": 700}), asking.ask({"amount": 800}, tool="shell")
    call_approvals.approve(writing.by("pia", via="screen"), ran.key, ran.shown)
    made = factories.call("shell", rule="over-500", outcome="ok")
    ended = {"state": "done", "outcome": "ok", "spent": made.at}
    models.Approval.objects.filter(key=ran.key).update(**ended, edited={"amount": 1})
    held = factories.call(
        "papers",
        rule="over-500",
        outcome="approval-pending",
        error=f"over-500 asked: Waiting for approval {waiting.key}. Call again with exactly the same arguments.",
    )
    page = call_viewer.get(f"/calls/{held.pk}/").context["page"]
    assert (page.outcome, page.asked.words) == ("waits for approval", "waits for approval")
    html = dashboard.text(call_viewer.get(f"/calls/{made.pk}/"))
    assert f"Approval {ran.key} of this call: approved by pia, with changes; the call succeeded" in html
    # Who may not decide may not see what was approved, either.
    assert f"/review/approvals/{ran.key}/" not in html
    olive.user_permissions.add(auth.Permission.objects.get(codename="decide_approval"))
    assert f"/review/approvals/{ran.key}/" in dashboard.text(call_viewer.get(f"/calls/{made.pk}/"))
    # Which of two it was is not known.
    other = asking.ask({"amount": 900}, tool="shell")
    models.Approval.objects.filter(key=other.key).update(**ended)
    assert call_viewer.get(f"/calls/{made.pk}/").context["page"].asked is None
