"""The saved views of a list: their filters, their view model, and the Django views that change them."""

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
    """The name of a view, and its filters as a query string."""

    name = forms.CharField(max_length=60)
    query = forms.CharField(required=False, max_length=2000)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredList:
    """A list: the name of its URL, the form of its filters, and the ``names`` of the fields that a view stores besides
    a period, but not the offset. ``tab`` is the field of the page's tab: a view opens in the current tab.
    """

    # All filtered lists.
    by_page: ClassVar[dict[str, FilteredList]] = {}

    page: str
    form: type[forms.Form]
    names: tuple[str, ...]
    tab: str = ""

    def __post_init__(self) -> None:
        self.by_page[self.page] = self

    def query(self, criteria: Mapping[str, Any]) -> str:
        """Return the filters that a view stores as a query string; empty without any."""
        period = periods.address_parameters(criteria) if issubclass(self.form, periods.Period) else {}
        return filters.query_string({name: criteria[name] for name in self.names} | period)

    def address(self, query: str = "") -> str:
        """Return the URL of the list with these filters."""
        return reverse(f"web:{self.page}") + (f"?{query}" if query else "")

    def present(self, request: http.Request, criteria: Mapping[str, Any]) -> Present:
        """Return the reader's saved views of the list, which is filtered by ``criteria``."""
        return Present(self, request, criteria)


class Present(pieces.View):
    """The reader's saved views of a list; ``chosen`` is the number of filters besides the search and the period."""

    def __init__(self, of: FilteredList, request: http.Request, criteria: Mapping[str, Any]) -> None:
        tab = filters.query_string({of.tab: criteria[of.tab]}) if of.tab else ""
        stored = saved_views.of(cast("int", request.user.pk), of.page)
        self.page, self.query = of.page, of.query(criteria)
        self.url, self.all_url = of.address(), of.address(tab)
        self.views = [
            # The name, the URL, and whether the list is filtered by it.
            (view.name, of.address("&".join(filter(None, (tab, view.query)))), view.query == self.query)
            for view in stored
        ]
        self.chosen = sum(bool(criteria[name]) for name in of.names if name not in ("q", "sort"))
        self.current = next((name for name, _, is_current in self.views if is_current), "")


@require_POST
def save(request: http.Request, page: str) -> HttpResponse:
    """Save the filters of a list under a name, for the reader only."""
    query = _declare(request, page, refusal="Not saved")
    name = View(request.POST).checked()["name"]
    saved_views.save(cast("int", request.user.pk), page, name, query)
    return responses.respond(request, notices.Notice(text=f"View {name} saved."))


@require_POST
def delete(request: http.Request, page: str) -> HttpResponse:
    """Delete a view of the reader; the list stays filtered."""
    _declare(request, page, refusal="Not deleted")
    name = View(request.POST).checked()["name"]
    saved_views.remove(cast("int", request.user.pk), page, name)
    return responses.respond(request, notices.Notice(text=f"View {name} deleted."))


def _declare(request: http.Request, page: str, *, refusal: str) -> str:
    """Declare a redirect to the filtered list, and return its valid filters. Raise Http404 for a list without views."""
    filtered_list = FilteredList.by_page.get(page)
    if filtered_list is None:
        raise Http404(f"There is no list {page!r} whose views could be saved.")
    query = filtered_list.query(filters.read(filtered_list.form(QueryDict(request.POST.get("query", "")))))
    responses.declare(request, filtered_list.address(query), refusal=refusal)
    return query
