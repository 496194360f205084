"""Tests of the call log: its filters, its totals, its charts, and its export."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.web import acting
from toolbelt.store import calls as stored_calls
from toolbelt.web.calls import views as calls

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def look(browser: Client, **said: Any) -> Any:
    return browser.get("/calls/", said).context["page"]


def log(browser: Client, **said: Any) -> Any:
    return look(browser, view="log", **said)


def test_only_who_may_see_calls_sees_them_and_the_way_to_them(viewer: Client, reader: Client) -> None:
    assert viewer.get("/calls/").status_code == 403
    assert "/calls/" not in acting.text(viewer.get("/agents/"))
    assert '<a href="/calls/" aria-current="page">' in acting.text(reader.get("/calls/"))


def test_all_errors_are_found_with_one_filter(reader: Client) -> None:
    for outcome in ("ok", "cancelled", "tool-failed", "tool-denied"):
        factories.call(outcome=outcome)
    assert [one.outcome for one in log(reader, outcome="error").calls] == ["refused", "failed"]
    assert look(reader, outcome="error").matches == "2 calls, 2 errors"
    assert "/calls/?view=log&amp;outcome=error&amp;period=30d" in acting.text(reader.get("/"))


def test_a_call_says_who_called_what_and_how_it_ended(reader: Client) -> None:
    factories.call(
        session="s1", outcome="tool-failed", error="It broke.", arguments_bytes=20, result_bytes=1500
    )
    (one,) = log(reader).calls
    assert (one.agent, one.agent_url, one.tool, one.tool_url, one.session) == (
        "ada",
        "/agents/ada/",
        "shell",
        "/tools/shell/",
        "s1",
    )
    assert (one.state, one.outcome, one.error) == (
        "unavailable",
        "failed",
        "It broke.",
    )
    html = acting.text(reader.get("/calls/?view=log"))
    assert '120 ms <span class="quiet">20 bytes in, 1.5 KB out</span>' in html


def test_a_session_leads_to_its_calls_of_the_period(reader: Client) -> None:
    factories.call(session="s1", days_ago=1)
    factories.call(session="s1", outcome="tool-failed")
    factories.call(session="s2")
    factories.call(agent="bob", session="s1")
    page = log(reader, period="7d")
    assert page.calls[2].session_url == "/calls/?view=log&agent=ada&session=s1&period=7d"
    page = reader.get(page.calls[2].session_url).context["page"]
    assert [(one.agent, one.session) for one in page.calls] == [("ada", "s1")] * 2
    assert page.matches == "2 calls, newest first"
    html = acting.text(reader.get("/calls/?session=s1"))
    assert '<input type="checkbox" name="session" value="s1" autocomplete="off" checked>' in html
    assert "session=s1" in html.partition('id="downloads"')[2].partition("</p>")[0]


def test_what_no_longer_exists_is_named_and_leads_nowhere(reader: Client) -> None:
    factories.call("gone", agent="nobody", outcome="unknown-tool")
    (one,), (figure,) = log(reader).calls, look(reader).figures
    assert (one.agent_url, one.tool_url, figure.tool_url) == ("", "", "")
    factories.call("load_tools")
    assert [one.mark for one in look(reader).figures] == ["unknown", "Toolbelt's own"]


def test_the_figures_of_each_tool_are_compared_with_the_largest(reader: Client) -> None:
    for duration in (100, 200):
        factories.call("shell", duration_ms=duration)
    for outcome in ("ok", "tool-failed", "tool-denied", "ok"):
        factories.call("papers", duration_ms=2000, outcome=outcome)
    page = look(reader)
    papers, shell = page.figures
    assert (papers.tool, papers.usage.calls, papers.share, papers.usage.errors, papers.error_share) == (
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


def test_many_tools_are_folded_and_can_be_shown(reader: Client) -> None:
    for number in range(20):
        factories.call(f"tool_{number}")
    page = look(reader)
    assert (len(page.figures), page.every_url, page.every_words) == (12, "/calls/?every=yes", "Show all 20")
    assert len(look(reader, every="yes").figures) == 20


def test_the_chart_has_a_bar_a_day_and_says_itself_in_words(reader: Client) -> None:
    for days_ago in (0, 2, 2):
        factories.call(days_ago=days_ago)
    factories.call(days_ago=2, outcome="tool-failed")
    since = timezone.localdate() - dt.timedelta(days=3)
    chart = look(reader, since=since.isoformat()).chart
    assert [bar.good for bar in chart.bars] == [0, 50, 0, 25]
    assert [bar.failed for bar in chart.bars] == [0, 25, 0, 0]
    assert chart.words.startswith("4 calls in 4 days, most on ")
    assert chart.bars[1].words == "3 calls, 0 refused, 1 failed"
    assert chart.scale == ("4", "2", "0")
    days = [f"{timezone.localdate() - dt.timedelta(days=back):%-d %b}" for back in (3, 2, 1, 0)]
    assert [label.words for label in chart.days] == days


def test_it_is_narrowed_by_the_address(reader: Client) -> None:
    factories.call("shell")
    factories.call("papers", agent="bob", outcome="tool-denied")
    factories.call("shell", days_ago=40)
    today = timezone.localdate()
    long_ago = (today - dt.timedelta(days=60)).isoformat()
    for said, count in (
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
        assert len(log(reader, **said).calls) == count, said


@pytest.mark.parametrize(("most", "days"), [(4, 30), (3, 7), (2, 1), (0, 1)])
def test_where_there_are_too_many_calls_to_add_up_it_begins_later_for_who_asks_for_no_day(
    reader: Client, monkeypatch: pytest.MonkeyPatch, most: int, days: int
) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", most)
    for days_ago in (0, 1, 6, 29):
        factories.call(days_ago=days_ago)
    first = timezone.localdate() - dt.timedelta(days=days - 1)
    assert look(reader).period.since == first.isoformat()
    asked = timezone.localdate() - dt.timedelta(days=40)
    assert look(reader, since=asked.isoformat()).period.since == asked.isoformat()


@pytest.mark.parametrize(
    ("period", "days_ago"), [("today", [0]), ("yesterday", [1]), ("7d", [0, 1, 6]), ("30d", [0, 1, 6, 29])]
)
def test_a_preset_is_the_days_up_to_today(reader: Client, period: str, days_ago: list[int]) -> None:
    called = {factories.call(days_ago=back).pk: back for back in (0, 1, 6, 29, 30)}
    page = log(reader, period=period)
    assert sorted(called[one.call.id] for one in page.calls) == days_ago
    assert [choice.value for choice in page.period.choices if choice.chosen] == [period]
    assert period in page.download_url


def test_a_preset_has_precedence_over_days_and_days_are_custom(reader: Client) -> None:
    factories.call(days_ago=3)
    day = (timezone.localdate() - dt.timedelta(days=3)).isoformat()
    assert len(log(reader, period="today", since=day).calls) == 0
    page = log(reader, since=day, until=day)
    assert len(page.calls) == 1
    assert [choice.value for choice in page.period.choices if choice.chosen] == ["custom"]
    assert [choice.value for choice in look(reader).period.choices if choice.chosen] == ["30d"]


def test_the_values_of_the_charts_stand_in_tables_that_lead_to_each_day(reader: Client) -> None:
    factories.call(agent="ada", days_ago=2)
    factories.call(agent="ada", days_ago=1)
    day = timezone.localdate() - dt.timedelta(days=2)
    html = reader.get("/calls/?agent=ada").content.decode()
    address = f"/calls/?view=log&amp;agent=ada&amp;period=custom&amp;since={day}&amp;until={day}"
    assert f'<a href="{address}">{day:%A, %-d %B}</a>' in html
    assert len(reader.get(address.replace("&amp;", "&")).context["page"].calls) == 1
    assert "Duration by day as a table" in html


def test_a_call_has_a_page_with_all_that_was_recorded(reader: Client) -> None:
    told: dict[str, Any] = {
        "session": "s1",
        "request_id": "req-7",
        "arguments_bytes": 20,
        "result_bytes": 1500,
        "revision": 3,
    }
    made = factories.call(
        outcome="tool-denied", reason="blocked", error="No.", arguments={"b": 1, "a": "<i>"}, **told
    )
    html = acting.text(reader.get(log(reader).calls[0].url))
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
    assert reader.get("/calls/999999/").status_code == 404


def test_a_call_without_recorded_arguments_says_how_to_record_them(reader: Client) -> None:
    made = factories.call("gone", agent="nobody")
    html = acting.text(reader.get(f"/calls/{made.pk}/"))
    assert "TOOLBELT_RECORD_ARGUMENTS" in html
    assert "/preview/" not in html


def test_the_log_is_exported_as_it_is_narrowed_and_runs_no_formula(reader: Client) -> None:
    factories.call("papers", error='=cmd|"/c calc"!A1', arguments={"q": "x"})
    factories.call("shell")
    factories.call("papers", days_ago=40)
    answer = reader.get(look(reader, tool="papers").download_url)
    assert answer.streaming
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="calls-')
    (line,) = csv.DictReader(io.StringIO(b"".join(answer).decode()))
    assert (line["tool"], line["agent"], line["duration_ms"]) == ("papers", "ada", "120")
    assert line["at"].endswith("+00:00")
    assert line["error"] == '\'=cmd|"/c calc"!A1'
    assert line["arguments"] == '{"q": "x"}'


def test_a_long_export_is_read_in_parts(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_calls, "WALKED", 2)
    for _ in range(5):
        factories.call()
    assert len(b"".join(reader.get("/calls/download/")).splitlines()) == 6


def test_who_may_not_see_calls_gets_neither_a_call_nor_the_export(viewer: Client) -> None:
    made = factories.call()
    assert viewer.get(f"/calls/{made.pk}/").status_code == 403
    assert viewer.get("/calls/download/").status_code == 403


def test_what_ends_earlier_begins_earlier(reader: Client) -> None:
    last = timezone.localdate() - dt.timedelta(days=60)
    assert look(reader, until=last.isoformat()).period.since == (last - dt.timedelta(days=29)).isoformat()


def test_the_log_is_paged_and_the_pages_keep_the_filter(reader: Client) -> None:
    last = [factories.call() for _ in range(31)][-1]
    page = log(reader, agent="ada")
    assert (len(page.calls), page.pages.words, page.pages.newer_url) == (30, "30 of 31", "")
    assert page.pages.older_url == f"/calls/?view=log&agent=ada&older={last.pk - 29}"
    page = log(reader, agent="ada", older=last.pk - 29)
    assert (len(page.calls), page.pages.older_url) == (1, "")
    assert page.pages.newer_url == "/calls/?view=log&agent=ada"


def test_durations_are_drawn_from_day_to_day(reader: Client) -> None:
    for days_ago, duration in ((0, 100), (2, 400), (2, 200)):
        factories.call(days_ago=days_ago, duration_ms=duration)
    assert look(reader, since=timezone.localdate().isoformat()).lines is None
    since = timezone.localdate() - dt.timedelta(days=3)
    lines = look(reader, since=since.isoformat()).lines
    assert (lines.median, lines.slow, lines.width) == ("12,50 36,75", "12,0 36,75", 36)
    assert lines.scale == ("400 ms", "200 ms", "0 ms")
    assert (lines.dots[0].median, lines.dots[0].slow) == ("200 ms", "400 ms")


def test_choosing_gets_all_but_the_filter(reader: Client) -> None:
    factories.call()
    html = acting.text(reader.get("/calls/", {"agent": "ada"}, headers=acting.HTMX))
    assert '<p id="matches" hx-swap-oob="innerHTML">1 call</p>' in html
    assert 'id="filter"' not in html


def test_without_calls_it_says_what_would_be_here(reader: Client) -> None:
    assert "No calls in this period" in acting.text(reader.get("/calls/"))
    assert "No matching calls" in acting.text(reader.get("/calls/", {"agent": "ada"}))


def test_hostile_texts_are_shown_and_do_nothing(reader: Client) -> None:
    evil = "<script>alert(1)</script>\u202e"
    factories.call(evil, agent=evil, session=evil, outcome="unknown-tool", error=evil)
    # What a form sends back has to be what it was.
    for address in ("/calls/", "/calls/?view=log"):
        html = re.sub('value="[^"]*"', "", reader.get(address).content.decode())
        assert evil not in html
        assert "\u202e" not in html
        assert "&lt;script&gt;" in html


def test_it_asks_the_database_the_same_few_questions_however_much_there_is(reader: Client) -> None:
    def ask() -> list[int]:
        return [acting.queries(partial(look, reader, view=view)) for view in calls.TABS]

    factories.call()
    ask()
    before = ask()
    for number in range(40):
        factories.call(f"tool_{number}", days_ago=number % 7, agent=f"agent-{number}")
        factories.agent(f"agent-{number}")
    ask()
    assert ask() == before
    assert max(before) <= 24


def test_the_tabs_keep_the_filters_that_they_have(reader: Client) -> None:
    factories.call()
    usage, log, unused = look(reader, agent="ada", tool="shell", period="7d").tabs
    assert (usage.url, usage.is_current) == ("/calls/?agent=ada&tool=shell&period=7d", True)
    assert log.url == "/calls/?view=log&agent=ada&tool=shell&period=7d"
    assert unused.url == "/calls/?view=unused&agent=ada&period=7d"
    html = acting.text(reader.get(log.url))
    assert '<input type="hidden" name="view" value="log">' in html
    assert 'aria-current="page">Log</a>' in html


@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-20", "9999-12-31"])
@pytest.mark.parametrize("end", ["since", "until"])
def test_a_day_at_an_end_of_the_calendar_narrows_nothing(reader: Client, end: str, day: str) -> None:
    factories.call()
    assert len(log(reader, **{end: day}).calls) == 1
    assert "1 new call" in acting.text(reader.get("/calls/", {end: day, "newer": "0"}))
