"""What may a form of the dashboard send? Checked here, before anything else looks at it."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.core import agents, sessions
from toolbelt.web import words

_WORDS = [(word, word) for word in ("true", "false", "unset")]


class Change(forms.Form):
    """What every change may bring: the answer to a question if there was one, and a reason that is kept with it."""

    confirm = forms.BooleanField(required=False)
    reason = forms.CharField(required=False, max_length=500)

    def problems(self) -> str:
        """Say what is wrong, in a line."""
        return "; ".join(f"{name}: {found[0]}" for name, found in self.errors.items())


class Flip(Change):
    """One flip: what is wanted, and what the page showed."""

    on = forms.ChoiceField(choices=_WORDS)
    was = forms.ChoiceField(choices=_WORDS)

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.switches.flip and override."""
        return {
            "on": words.read(self.cleaned_data["on"]),
            "was": words.read(self.cleaned_data["was"]),
            "confirm": self.cleaned_data["confirm"],
            "reason": self.cleaned_data["reason"],
        }


class Overrides(forms.MultipleChoiceField):
    """Overrides as a page showed them: ``github__issue_read=true``, once or more."""

    def valid_value(self, value: str) -> bool:
        """Say whether it is a tool with what was stored for it; which tools there are is not asked here."""
        tool, _, stored = value.rpartition("=")
        return bool(tool) and stored in ("true", "false")


class Stop(Change):
    """The emergency stop of something: whether it is wanted, and what the page showed."""

    on = forms.ChoiceField(choices=[("true", "true"), ("false", "false")])
    was = forms.ChoiceField(choices=[("true", "true"), ("false", "false")])

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.stops.stop."""
        given = self.cleaned_data
        return {"on": given["on"] == "true", "was": given["was"] == "true", "reason": given["reason"]}


class Reset(Change):
    """The overrides that are to go, as the page showed them."""

    was = Overrides()

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.tools_config.change."""
        pairs = (value.rpartition("=") for value in self.cleaned_data["was"])
        was = {tool: words.read(stored) for tool, _, stored in pairs}
        return {
            "wanted": dict.fromkeys(was),
            "was": was,
            "confirm": self.cleaned_data["confirm"],
            "reason": self.cleaned_data["reason"],
        }


class AccessFilter(forms.Form):
    """What narrows the Access page: nonsense in an address narrows nothing."""

    q = forms.CharField(required=False, max_length=200)
    show = forms.ChoiceField(
        required=False,
        choices=[(word, word) for word in ("", "active", "overridden", "destructive")],
    )
    message = forms.CharField(required=False, max_length=4000)


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


class Eviction(Change):
    """Which session is to begin anew."""

    session = forms.CharField(max_length=sessions.LONGEST_ID, strip=False)


class Settings(Change):
    """One agent's settings as somebody typed them, and what the page showed (``was``, as an entry of a belt)."""

    KEYS = ("title", "role", "description", "model", "kind", "loadout", "budget", "protected")

    title = forms.CharField(required=False)
    role = forms.CharField(required=False)
    description = forms.CharField(required=False)
    model = forms.CharField(required=False)
    kind = forms.CharField(required=False)
    loadout = forms.CharField(required=False)
    max_tools = forms.IntegerField(required=False)
    max_tokens = forms.IntegerField(required=False)
    on_exceed = forms.ChoiceField(required=False, choices=[(word, word) for word in agents.ON_EXCEED])
    protected = forms.BooleanField(required=False)
    was = forms.JSONField(required=False)

    def clean_was(self) -> dict[str, Any]:
        """Take nothing but what the page shows."""
        was = self.cleaned_data["was"]
        return {key: was.get(key) if isinstance(was, dict) else None for key in self.KEYS}

    def wanted(self) -> dict[str, Any]:
        """Give the changes, and what was seen of what they change, as control.entries.change takes them."""
        given = self.cleaned_data
        limits = {name: given[name] for name in ("max_tools", "max_tokens") if given[name] is not None}
        if given["on_exceed"] not in ("", "warn"):
            limits["on_exceed"] = given["on_exceed"]
        typed = {**given, "budget": limits, "description": given["description"].replace("\r\n", "\n")}
        entry = {key: typed[key] or None for key in self.KEYS}
        was = given["was"]
        return {
            "changes": {key: value for key, value in entry.items() if value != was[key]},
            "was": {key: was[key] for key, value in entry.items() if value != was[key]},
            "confirm": given["confirm"],
            "reason": given["reason"],
        }


class Copy(forms.Form):
    """The key of an agent that is to be like another one."""

    key = forms.CharField(max_length=200)


class AgentsFilter(forms.Form):
    """What narrows and sorts the list of agents."""

    q = forms.CharField(required=False, max_length=200)
    kind = forms.CharField(required=False, max_length=20)
    loadout = forms.CharField(required=False, max_length=64)
    sort = forms.CharField(required=False, max_length=20)


class ToolkitsFilter(forms.Form):
    """What narrows and sorts the list of toolkits."""

    q = forms.CharField(required=False, max_length=200)
    show = forms.CharField(required=False, max_length=20)
    sort = forms.CharField(required=False, max_length=20)


class ToolsFilter(forms.Form):
    """What narrows and sorts the list of tools, and where in it to begin."""

    q = forms.CharField(required=False, max_length=200)
    plugin = forms.CharField(required=False, max_length=64)
    state = forms.CharField(required=False, max_length=20)
    risk = forms.CharField(required=False, max_length=20)
    sort = forms.CharField(required=False, max_length=20)
    offset = forms.IntegerField(required=False, min_value=0, max_value=10**9)


class CallsFilter(forms.Form):
    """What narrows the log of calls, and where in it to look."""

    agent = forms.CharField(required=False, max_length=64)
    tool = forms.CharField(required=False, max_length=200)
    outcome = forms.CharField(required=False, max_length=20)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    older = forms.IntegerField(required=False, min_value=1)
    every = forms.BooleanField(required=False)


class MatrixFilter(forms.Form):
    """Which toolkits and which agent the matrix is narrowed to."""

    q = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=64)


class Trial(forms.Form):
    """A message to try on a toolkit, and the agent whose tools it is tried with."""

    message = forms.CharField(required=False, max_length=4000)
    whose = forms.CharField(required=False, max_length=64)


class ChangesFilter(forms.Form):
    """What narrows the audit log, and where in it to look."""

    person = forms.CharField(required=False, max_length=150)
    agent = forms.CharField(required=False, max_length=64)
    action = forms.CharField(required=False, max_length=64)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=1)


class HistoryFilter(ChangesFilter):
    """What narrows the log of one agent."""

    key = forms.CharField(required=False, max_length=64)


class Place(forms.Form):
    """Where in a list to begin."""

    offset = forms.IntegerField(required=False, min_value=0, max_value=10**9)


class TokensFilter(forms.Form):
    """Which tokens are looked for, and whom the next one is for."""

    q = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=64)


class Token(forms.Form):
    """Whose token is wanted, what it is for, and when it ends."""

    owner = forms.ChoiceField(choices=[("agent", "agent"), ("me", "me")])
    agent = forms.CharField(required=False, max_length=64)
    scope = forms.ChoiceField(required=False, choices=[("read", "read"), ("write", "write")])
    name = forms.CharField(required=False)
    days = forms.TypedChoiceField(
        required=False,
        choices=[(days, days) for days in ("7", "30", "90", "365")],
        coerce=int,
        empty_value=None,
    )


def wrong(form: forms.Form) -> dict[str, str]:
    """Say what is wrong with a form, by the names of its fields."""
    return {name: " ".join(map(str, found)) for name, found in form.errors.items()}


def said(form: forms.Form) -> dict[str, Any]:
    """Give what is sound of a form that filters; empty where a field is not given or makes no sense."""
    form.is_valid()
    return {name: form.cleaned_data.get(name) or "" for name in form.fields}
