"""What may the address of a page ask for? What makes no sense in one narrows nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.http import urlencode

from toolbelt.core import agents, sessions
from toolbelt.web.forms import fields


class Followed(forms.Form):
    """What an open page wants to hear of: one agent with the catalog, or everything."""

    agent = forms.CharField(required=False, max_length=64)


class Access(forms.Form):
    """What narrows the Access page: nonsense in an address narrows nothing."""

    q = forms.CharField(required=False, max_length=200)
    show = forms.ChoiceField(
        required=False,
        choices=[(word, word) for word in ("", "active", "overridden", "destructive")],
    )
    message = forms.CharField(required=False, max_length=4000)
    offset = fields.Offset()


class Question(forms.Form):
    """What is asked of one agent's preview, and which part of the answer is wanted."""

    VIEWS = ("tools", "policy", "json", "why")

    message = forms.CharField(required=False, max_length=4000)
    session = forms.CharField(required=False, max_length=sessions.LONGEST_ID)
    request = forms.CharField(required=False, max_length=sessions.LONGEST_ID)
    subagent = forms.ChoiceField(required=False, choices=[(kind, kind) for kind in agents.KINDS])
    view = forms.ChoiceField(required=False, choices=[(view, view) for view in VIEWS])
    format = forms.CharField(required=False, max_length=40)
    tool = forms.CharField(required=False, max_length=64)
    at = forms.CharField(required=False, max_length=40)
    offset = fields.Offset()


class Agents(forms.Form):
    """What narrows and sorts the list of agents, and where in it to begin."""

    q = forms.CharField(required=False, max_length=200)
    kind = forms.CharField(required=False, max_length=20)
    loadout = forms.CharField(required=False, max_length=64)
    archived = forms.BooleanField(required=False)
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


class Toolkits(forms.Form):
    """What narrows and sorts the list of toolkits, and where in it to begin."""

    q = forms.CharField(required=False, max_length=200)
    show = forms.CharField(required=False, max_length=20)
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


class Tools(forms.Form):
    """What narrows and sorts the list of tools, and where in it to begin."""

    q = forms.CharField(required=False, max_length=200)
    plugin = forms.CharField(required=False, max_length=64)
    state = forms.CharField(required=False, max_length=20)
    risk = forms.CharField(required=False, max_length=20)
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


class Calls(forms.Form):
    """What narrows the log of calls, and where in it to look."""

    agent = forms.CharField(required=False, max_length=64)
    tool = forms.CharField(required=False, max_length=200)
    outcome = forms.CharField(required=False, max_length=20)
    since = fields.Day(required=False)
    until = fields.Day(required=False)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=0)
    every = forms.BooleanField(required=False)
    unused = forms.ChoiceField(required=False, choices=[("all", "all")])
    unused_offset = fields.Offset()


class Matrix(forms.Form):
    """Which toolkits and which agents the matrix is narrowed to, and where in both to begin."""

    q = forms.CharField(required=False, max_length=200)
    agents = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=64)
    offset = fields.Offset()
    agents_offset = fields.Offset()


class Holders(forms.Form):
    """Which agents the page of a thing shows, and where in them to begin."""

    agents = forms.CharField(required=False, max_length=200)
    offset = fields.Offset()


class Trial(Holders):
    """A message to try on a toolkit, and the agent whose tools it is tried with; which agents are shown beside it."""

    message = forms.CharField(required=False, max_length=4000)
    whose = forms.CharField(required=False, max_length=64)


class Changes(forms.Form):
    """What narrows the audit log, and where in it to look."""

    person = forms.CharField(required=False, max_length=150)
    agent = forms.CharField(required=False, max_length=64)
    action = forms.CharField(required=False, max_length=64)
    key = forms.CharField(required=False, max_length=64)
    via = forms.CharField(required=False, max_length=7)
    batch = forms.UUIDField(required=False)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=1)


class History(Changes):
    """What narrows the log of one agent."""


class Download(Changes):
    """What of the audit log is wanted as a file, and in which form."""

    form = forms.ChoiceField(choices=[("csv", "csv"), ("json", "json")])


class Comparison(forms.Form):
    """Which two sides are compared; the moment of a side, where it is wanted as it was."""

    a = forms.CharField(required=False, max_length=200)
    b = forms.CharField(required=False, max_length=200)
    a_at = forms.DateTimeField(required=False)
    b_at = forms.DateTimeField(required=False)
    show = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


class Export(forms.Form):
    """Which sections are to go out, and in which form."""

    section = fields.Sections(required=False)
    form = forms.ChoiceField(required=False, choices=[("yaml", "yaml"), ("json", "json")])


class OneTool(Holders):
    """Which agents the page of a tool shows: of those that have it, and of those that do not."""

    others_offset = fields.Offset()


class Place(forms.Form):
    """Where in a list to begin."""

    offset = fields.Offset()


class Tokens(forms.Form):
    """Which tokens are looked for, and whom the next one is for."""

    q = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=64)
    offset = fields.Offset()
    gone_offset = fields.Offset()


def said(form: forms.Form) -> dict[str, Any]:
    """Give what is sound of a form that filters; empty where a field is not given or makes no sense."""
    form.is_valid()
    return {name: form.cleaned_data.get(name) or "" for name in form.fields}


def kept(said: Mapping[str, Any]) -> str:
    """Write what :func:`said` gives as the query of an address."""
    return urlencode({name: value for name, value in said.items() if value})
