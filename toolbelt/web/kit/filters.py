"""Filters in the query of a page. Invalid values are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.http import urlencode

from toolbelt.web.kit import fields


class FindAgents(forms.Form):
    """The filter of agents on the page of a tool or toolkit, and the offset in their list."""

    agents = forms.CharField(required=False, max_length=200)
    offset = fields.Offset()


def read(form: forms.Form) -> dict[str, Any]:
    """Return the valid values of a form of filters; empty where a field is missing or invalid."""
    form.is_valid()
    return {name: form.cleaned_data.get(name) or "" for name in form.fields}


def query_string(filters: Mapping[str, Any]) -> str:
    """Return filters, as :func:`read` returns them, as a query string."""
    return urlencode({name: value for name, value in filters.items() if value})


def address(path: str, criteria: Mapping[str, Any]) -> str:
    """Return the URL of a page with these filters."""
    query = query_string(criteria)
    return f"{path}?{query}" if query else path
