"""The saved views of a list: their filters, their presentation, and the views that change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from django import forms
from django.http import Http404, HttpResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_POST

from toolbelt.control.people import saved_views
from toolbelt.web.kit import filters, http, notices, periods, pieces, responses
from toolbelt.web.kit import forms as kit


class View(kit.Change):
    """The name of a view, and its filters as the query of an address."""

    name = forms.CharField(max_length=60)
    query = forms.CharField(required=False, max_length=2000)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredList:
    """A list by the name of its address, the form of its filters, and which of the form's fields a view keeps besides a
    period: not where in the list the reader is. ``tab`` is the field of the page's tab: a view opens in the same tab.
    """

    # All of them, by their pages.
    every: ClassVar[dict[str, FilteredList]] = {}

    page: str
    form: type[forms.Form]
    names: tuple[str, ...]
    tab: str = ""

    def __post_init__(self) -> None:
        self.every[self.page] = self

    def query(self, given: Mapping[str, Any]) -> str:
        """Return the filters that a view keeps as the query of an address; empty without any."""
        period = periods.address_parameters(given) if issubclass(self.form, periods.Period) else {}
        return filters.query_string({name: given[name] for name in self.names} | period)

    def address(self, query: str = "") -> str:
        """Return the address of the list with these filters."""
        return reverse(f"web:{self.page}") + (f"?{query}" if query else "")

    def present(self, request: http.Request, given: Mapping[str, Any]) -> pieces.View:
        """Return the reader's saved views of the list, filtered as ``given``; ``chosen`` is by how many filters
        beside the search and the period.
        """
        query = self.query(given)
        tab = filters.query_string({self.tab: given[self.tab]}) if self.tab else ""
        views = [
            pieces.View(
                name=view.name,
                url=self.address("&".join(filter(None, (tab, view.query)))),
                is_current=view.query == query,
            )
            for view in saved_views.of(cast("int", request.user.pk), self.page)
        ]
        return pieces.View(
            page=self.page,
            url=self.address(),
            all_url=self.address(tab),
            query=query,
            views=tuple(views),
            chosen=sum(bool(given[name]) for name in self.names if name not in ("q", "sort")),
            current=next((view.name for view in views if view.is_current), ""),
        )


@require_POST
def save(request: http.Request, page: str) -> HttpResponse:
    """Save the filters of a list under a name, for the reader alone."""
    query = _declare(request, page, undone="Not saved")
    name = View(request.POST).checked()["name"]
    saved_views.save(cast("int", request.user.pk), page, name, query)
    return responses.respond(request, notices.Notice(text=f"View {name} saved."))


@require_POST
def delete(request: http.Request, page: str) -> HttpResponse:
    """Delete a view of the reader; the list stays filtered."""
    _declare(request, page, undone="Not deleted")
    name = View(request.POST).checked()["name"]
    saved_views.remove(cast("int", request.user.pk), page, name)
    return responses.respond(request, notices.Notice(text=f"View {name} deleted."))


def _declare(request: http.Request, page: str, *, undone: str) -> str:
    """Lead back to the list as it is filtered; return its valid filters. Raise Http404 for a list without views."""
    shown = FilteredList.every.get(page)
    if shown is None:
        raise Http404(f"There is no list {page!r} whose views could be saved.")
    query = shown.query(filters.read(shown.form(QueryDict(request.POST.get("query", "")))))
    responses.declare(request, shown.address(query), undone=undone)
    return query
