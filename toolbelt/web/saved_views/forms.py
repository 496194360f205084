"""The form that saves or deletes a view."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import forms as kit


class View(kit.Change):
    """The name of a view, and its filters as the query of an address."""

    name = forms.CharField(max_length=60)
    query = forms.CharField(required=False, max_length=2000)
