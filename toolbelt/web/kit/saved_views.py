"""The saved views of a list: which filters they keep, and what the page of the list shows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.http import QueryDict
from django.urls import reverse

from toolbelt.control.people import saved_views
from toolbelt.web.kit import filters, http, periods, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredList:
    """A list by the name of its address, the form of its filters, and which of the form's fields a view keeps besides a
    period: not where in the list the reader is. ``tab`` is the field of the page's tab: a view opens in the same tab.
    """

    page: str
    form: type[forms.Form]
    names: tuple[str, ...]
    tab: str = ""

    def query(self, given: Mapping[str, Any]) -> str:
        """Return the filters that a view keeps as the query of an address; empty without any."""
        period = periods.address_parameters(given) if issubclass(self.form, periods.Period) else {}
        return filters.query_string({name: given[name] for name in self.names} | period)

    def read(self, query: str) -> str:
        """Return the valid filters in a query that was sent."""
        return self.query(filters.read(self.form(QueryDict(query))))

    def address(self, query: str = "") -> str:
        """Return the address of the list with these filters."""
        return reverse(f"web:{self.page}") + (f"?{query}" if query else "")

    def present(self, request: http.Request, given: Mapping[str, Any]) -> pieces.View:
        """Return what the reader saved of the list, which is filtered as ``given``; ``chosen`` is by how many filters
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
