"""The forms of the plugins' pages."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import forms
from django.utils import timezone

from toolbelt.control.servers import plugin_overview
from toolbelt.core import connections
from toolbelt.web.kit import fields, words
from toolbelt.web.kit import forms as kit

# A refresh that was begun before that is no longer waited for.
MAX_WAIT = dt.timedelta(hours=1)


class Filter(forms.Form):
    """What narrows the list, and when somebody asked for which servers to be asked."""

    q = forms.CharField(required=False, max_length=200)
    show = forms.CharField(required=False, max_length=20)
    asked = forms.IntegerField(required=False, min_value=0, max_value=10**14)
    of = forms.CharField(required=False, max_length=64)
    all = forms.BooleanField(required=False)

    def said(self) -> dict[str, Any]:
        """Return what is sound of it; ``asked`` as a moment, None where there is none to wait for."""
        self.is_valid()
        found = {name: self.cleaned_data.get(name) or "" for name in self.fields}
        return found | {"asked": self._moment(self.cleaned_data.get("asked"))}

    @staticmethod
    def _moment(milliseconds: int | None) -> dt.datetime | None:
        if milliseconds is None:
            return None
        at = dt.datetime.fromtimestamp(milliseconds / 1000, tz=dt.UTC)
        return at if timezone.now() - MAX_WAIT < at <= timezone.now() else None


class Switch(kit.Change):
    """Which of a plugin's switches, what is wanted, and what the page showed."""

    control = forms.ChoiceField(choices=[(name, name) for name in plugin_overview.CONTROLS])
    on = forms.ChoiceField(choices=[("true", "true"), ("false", "false")])
    was = forms.ChoiceField(choices=[("true", "true"), ("false", "false")])

    def wanted(self) -> dict[str, Any]:
        """Return the keyword arguments of control.providers.switch."""
        given = self.checked()
        return {
            "control": given["control"],
            "on": words.read(given["on"]),
            "was": words.read(given["was"]),
            "reason": given["reason"],
        }


class Versions(forms.MultipleChoiceField):
    """Tools with the version that a page showed of each: ``files__read=sha256:…``, once or more."""

    def valid_value(self, value: str) -> bool:
        """Return whether it is a tool with a version; whether it is still that one is not asked here."""
        tool, _, version = value.partition("=")
        return bool(tool) and bool(version)


class Review(kit.Change):
    """What was decided of which tools: those that are ticked, or ``all`` that the page showed."""

    decision = forms.ChoiceField(choices=[(word, word) for word in ("approve", "approve-all", "off")])
    tool = Versions(required=False)
    all = Versions(required=False)
    carry = forms.BooleanField(required=False)

    def shown(self) -> dict[str, str]:
        """Return the tools that are decided on, with the version that was shown of each."""
        field = "all" if self.cleaned_data["decision"] == "approve-all" else "tool"
        pairs = (value.partition("=") for value in self.cleaned_data[field])
        return {tool: version for tool, _, version in pairs}


class Reached(kit.Change):
    """Where a server is: its URL and the headers that it is sent, one a line; and what the page showed."""

    url = forms.CharField(max_length=2000)
    headers = forms.CharField(required=False, max_length=8000)
    sharing = forms.ChoiceField(
        required=False, choices=[("", ""), *((who, who) for who in connections.SHARING)]
    )
    idle = forms.IntegerField(required=False, min_value=1, max_value=connections.MAX_IDLE)
    max_connections = forms.IntegerField(
        required=False, min_value=1, max_value=connections.MAX_CONNECTIONS_LIMIT
    )
    was = forms.JSONField(required=False)

    def clean_headers(self) -> dict[str, str]:
        """Read the lines."""
        found = {}
        for line in filter(None, map(str.strip, self.cleaned_data["headers"].splitlines())):
            name, is_pair, value = line.partition(":")
            if not is_pair or not name.strip():
                raise forms.ValidationError(
                    "%(line)r is not a header: write a name, a colon and a value.", params={"line": line[:80]}
                )
            found[name.strip()] = value.strip()
        return found

    def clean_was(self) -> dict[str, Any]:
        """Take a mapping, whatever the page was said to have shown."""
        was = self.cleaned_data["was"]
        return was if isinstance(was, dict) else {}

    def connection(self) -> dict[str, Any]:
        """Return the connection as a belt has it."""
        headers = self.cleaned_data["headers"]
        found = {"url": self.cleaned_data["url"], **({"headers": headers} if headers else {})}
        return found | {name: value for name, value in self.connections_by().items() if value is not None}

    def connections_by(self) -> dict[str, Any]:
        """Return who shares connections, how long they are kept and how many; None for the default."""
        fields = ("sharing", "idle", "max_connections")
        return {name: self.cleaned_data[name] or None for name in fields if name in self.data}


class Server(Reached):
    """A server that is to be added."""

    name = forms.CharField(max_length=200)
    namespace = forms.CharField(required=False, max_length=200)
    title = forms.CharField(required=False, max_length=200)


class Declarers(kit.Change):
    """The agents whose tokens may declare the tools of a client plugin, and those that the page showed."""

    agent = fields.Names(required=False)
    was = fields.Names(required=False)


class ClientPlugin(kit.Change):
    """A client plugin that is to be created."""

    name = forms.CharField(max_length=200)
    namespace = forms.CharField(required=False, max_length=200)
    title = forms.CharField(required=False, max_length=200)
    agent = fields.Names(required=False)
