"""Filters in the address of a page: a value that makes no sense is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.http import urlencode

from toolbelt.web.kit import fields


class FindAgents(forms.Form):
    """Which agents the page of a thing shows, and where in them to begin."""

    agents = forms.CharField(required=False, max_length=200)
    offset = fields.Offset()


def read(form: forms.Form) -> dict[str, Any]:
    """Return what is sound of a form that filters; empty where a field is not given or makes no sense."""
    form.is_valid()
    return {name: form.cleaned_data.get(name) or "" for name in form.fields}


def query_string(filters: Mapping[str, Any]) -> str:
    """Write what :func:`read` returns as the query of an address."""
    return urlencode({name: value for name, value in filters.items() if value})


def address(path: str, given: Mapping[str, Any]) -> str:
    """Return the address of a page with what it is given."""
    query = query_string(given)
    return f"{path}?{query}" if query else path
