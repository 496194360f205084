"""The overview page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from toolbelt import locations
from toolbelt.control.people import rights
from toolbelt.control.reports import first_steps, overview, usage
from toolbelt.core import catalog
from toolbelt.web import agents
from toolbelt.web.call_log import charts
from toolbelt.web.call_log import views as calls
from toolbelt.web.kit import (
    audit_words,
    context_saved,
    http,
    periods,
    pieces,
    responses,
    waiting_calls,
    words,
)
from toolbelt.web.review import concerns

DAYS = 30
MAX_AGENTS = 14
MAX_CONCERNS = 8
MAX_CHANGES = 6
# The step and height of the sparkline, in units of its viewBox.
STEP, HEIGHT = 10, 64


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    return responses.show(request, _Page(request), "home/home.html")


class _Page(pieces.Page):
    """The overview."""

    def __init__(self, request: http.Request) -> None:
        user, may_undo = request.user, rights.undo_check(request.user)
        may_see_calls = rights.may_read(user, "call_record")
        today = timezone.localdate()
        first = today - dt.timedelta(days=DAYS - 1)
        loaded = overview.load(
            today=periods.midnight(today),
            maximum=MAX_CHANGES,
            max_agents=MAX_AGENTS,
            calls_since=periods.midnight(first) if may_see_calls else None,
        )
        concern_lines = concerns.lines(loaded.attention, loaded.spikes, waiting_calls.by_agent(request))
        count = len(loaded.attention.agents)
        setup = None if loaded.calls else first_steps.load()
        # The last step is only complete with the first call, after which the steps are hidden.
        completed = (
            [setup.has_server, setup.is_reviewed, setup.has_toolkit, bool(setup.agent)] if setup else []
        )
        self.count = count
        self.steps = setup
        self.is_checkout = locations.IS_CHECKOUT
        self.may_have_demo = settings.ENVIRONMENT != "production"
        self.next_step = 1 + [*completed, False].index(False)
        self.summary = f"{words.counted(count, 'agent')}, {words.tools(loaded.total)} in the catalog"
        self.concerns = [present() for present in concern_lines[:MAX_CONCERNS]]
        self.more_concerns = len(concern_lines) - MAX_CONCERNS
        self.entries = tuple(
            audit_words.Line(
                entry,
                audit_words.is_quickly_undone(user, entry) and may_undo(entry),
                is_open=rights.may_read(user, entry.subject_kind),
                stored=loaded.attention.stored,
            )
            for entry in loaded.today.entries
        )
        self.more_entries = loaded.today.total - len(loaded.today.entries)
        self.last = loaded.last and f"{audit_words.sentence(loaded.last)}, {words.since(loaded.last.at)}"
        by_day = loaded.calls or ()
        is_called = any(of_day.calls for of_day in by_day)
        self.usage = _Usage(by_day, first, today) if is_called else None
        self.uncalled = _uncalled(loaded.attention.stored, loaded.calls, today) if loaded.calls else ""
        self.saved = context_saved.for_all_agents() if may_see_calls else None
        self.agents = tuple(map(agents.Header, loaded.listed))
        self.more_agents = count > MAX_AGENTS


def _uncalled(stored: catalog.Catalog, usage_by_day: Sequence[usage.OfDay], today: dt.date) -> str:
    """Return how many tools were not called in the period of the list of tools; empty if all were called."""

    def exceeds(first: dt.date) -> bool:
        return sum(of_day.calls for of_day in usage_by_day if of_day.day >= first) > calls.MAX_CALLS

    since = calls.first_day(today, exceeds)
    count = len(usage.uncalled(stored, since=periods.midnight(since)))
    period = words.counted((today - since).days + 1, "day")
    return f"{words.tools(count)} not called in {period}" if count else ""


class _Usage(pieces.View):
    """The calls of the last days, of which there is at least one, as a chart and in figures."""

    height = HEIGHT

    def __init__(self, usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> None:
        days = charts.every_day(usage_by_day, first, last)
        calls = [day.calls for day in days]
        errors_by_day = [day.refused + day.failed for day in days]
        maximum, total, errors = max(calls), sum(calls), sum(errors_by_day)
        points = [_point(index, count, maximum) for index, count in enumerate(calls)]
        self.width = width = STEP * (len(days) - 1)
        busiest = days[calls.index(maximum)].day
        previous, self.week = sum(calls[-14:-7]), sum(calls[-7:])
        # A week with few calls is no basis for a comparison.
        is_comparable = previous >= 20
        percent = round(100 * (self.week - previous) / previous) if is_comparable else 0
        self.change = f", {words.signed(percent)} %" if is_comparable else ""
        self.line = " ".join(points)
        self.area = " ".join([f"0,{HEIGHT}", *points, f"{width},{HEIGHT}"])
        self.wrong = " ".join(_point(index, count, maximum) for index, count in enumerate(errors_by_day))
        self.days = list(zip(range(-STEP // 2, width, STEP), days, errors_by_day, strict=True))
        self.words = (
            f"{words.number(total)} calls in {len(days)} days, the most on {busiest:%-d %B}: "
            f"{words.number(maximum)}; {words.counted(errors, 'error')}"
        )
        self.today = calls[-1]
        self.errors = f"{100 * errors / total:.1f} %"


def _point(index: int, count: int, maximum: int) -> str:
    # Leave room for the width of the line at both ends.
    return f"{index * STEP},{HEIGHT - 2 - round((HEIGHT - 4) * count / maximum, 1)}"
