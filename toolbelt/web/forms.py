"""What may a form of the dashboard send? Checked here, before anything else looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.http import urlencode

from toolbelt.core import agents, grants, sessions
from toolbelt.web import spans, words

_WORDS = [(word, word) for word in ("true", "false", "unset")]


class Document(forms.JSONField):
    """Takes JSON. One that is nested without end is as little JSON as one that does not end."""

    def to_python(self, value: Any) -> Any:
        """Read it."""
        try:
            return super().to_python(value)
        except RecursionError as error:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Give what was sent, to be shown again."""
        try:
            return super().bound_data(data, initial)
        except RecursionError:
            return None


class Followed(forms.Form):
    """What an open page wants to hear of: one agent with the catalog, or everything."""

    agent = forms.CharField(required=False, max_length=64)


class Change(forms.Form):
    """What every change may bring: the answer to a question if there was one, and a reason that is kept with it."""

    confirm = forms.BooleanField(required=False)
    reason = forms.CharField(required=False, max_length=500)

    def problems(self) -> str:
        """Say what is wrong, in a line."""
        return "; ".join(f"{name}: {found[0]}" for name, found in self.errors.items())


class Flip(Change):
    """One flip: what is wanted, and what the page showed.

    A button that gives something for a while says all of it in one word, ``true-2h``, beside which ``on`` is what the
    page showed; with ``true-at`` it ends at the moment ``at``, in the time zone of the server.
    """

    on = forms.ChoiceField(choices=_WORDS, required=False)
    was = forms.ChoiceField(choices=_WORDS)
    given = forms.ChoiceField(
        required=False,
        choices=[(f"{on}-{span}",) * 2 for on in ("true", "false") for span in (*spans.SPANS, "at")],
    )
    at = forms.DateTimeField(required=False, input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])

    def clean(self) -> dict[str, Any]:
        """Ask for what is wanted, and for the moment if it shall end at one."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        given = cleaned.get("given")
        if not given and not cleaned.get("on") and "on" not in self.errors:
            self.add_error("on", "This field is required.")
        if given and given.endswith("-at") and cleaned.get("at") is None and "at" not in self.errors:
            self.add_error("at", "Say until when.")
        return cleaned

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.switches.flip and override."""
        on, _, span = (self.cleaned_data["given"] or self.cleaned_data["on"]).partition("-")
        ends = self.cleaned_data["at"] if span == "at" else spans.end(span) if span else None
        return {
            "on": words.read(on),
            "ends": ends,
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


class Names(forms.MultipleChoiceField):
    """Names, whichever there are."""

    def valid_value(self, value: str) -> bool:
        """Take any name; whether something is called so is not asked here."""
        return bool(value)


class SetAll(Change):
    """What all that is shown shall be (``set``: ``tools-true``, ``toolkits-unset``), for whom, and which toolkit."""

    set = forms.ChoiceField(
        choices=[(f"{what}-{word}",) * 2 for what in ("tools", "toolkits") for word, _ in _WORDS]
    )
    key = forms.CharField(required=False, max_length=200)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # No name for an attribute.
        self.fields["for"] = Names(required=False)

    def wanted(self) -> tuple[str, bool | None]:
        """Give what shall be set, and to what."""
        what, _, word = self.cleaned_data["set"].partition("-")
        return what, words.read(word)


class Bulk(Change):
    """What shall be set as a page showed it (``seen``: by agent, by key, what was set)."""

    on = forms.ChoiceField(choices=_WORDS)
    seen = Document()

    def clean_seen(self) -> dict[str, dict[str, grants.Said]]:
        """Take nothing but states, by the keys of agents and of what is switched."""
        seen = self.cleaned_data["seen"]
        sound = isinstance(seen, dict) and all(
            isinstance(keys, dict)
            # On, off, unset, or one of these with its end.
            and all(was is None or isinstance(was, bool | dict) for was in keys.values())
            for keys in seen.values()
        )
        if not sound or not seen:
            raise forms.ValidationError("This is not what a page shows.")
        return dict(seen)

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.bulk.apply."""
        return {
            "seen": self.cleaned_data["seen"],
            "on": words.read(self.cleaned_data["on"]),
            "confirm": self.cleaned_data["confirm"],
            "reason": self.cleaned_data["reason"],
        }


class Stop(Change):
    """The emergency stop of something: whether it is wanted, and what the page showed.

    From the Access page of an agent (``stop`` names it) it comes with a switch's form, whose fields say nothing here:
    there it is only offered for what is not stopped.
    """

    on = forms.ChoiceField(choices=[("true", "true"), ("false", "false")])
    was = forms.ChoiceField(choices=[("true", "true"), ("false", "false")])
    stop = forms.CharField(required=False, max_length=200)

    def __init__(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        given = {"on": "true", "was": "false", "stop": data["stop"]} if data.get("stop") else data
        super().__init__(given, *args, **options)

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
    at = forms.CharField(required=False, max_length=40)


class Eviction(Change):
    """Which session is to begin anew."""

    session = forms.CharField(max_length=sessions.LONGEST_ID, strip=False)


class Settings(Change):
    """One agent's settings as somebody typed them, and what the page showed (``was``, as an entry of a belt)."""

    KEYS = ("title", "role", "description", "model", "kind", "loadout", "budget", "mcp_loading", "protected")

    title = forms.CharField(required=False)
    role = forms.CharField(required=False)
    description = forms.CharField(required=False)
    model = forms.CharField(required=False)
    kind = forms.CharField(required=False)
    loadout = forms.CharField(required=False)
    max_tools = forms.IntegerField(required=False)
    max_tokens = forms.IntegerField(required=False)
    on_exceed = forms.ChoiceField(required=False, choices=[(word, word) for word in agents.ON_EXCEED])
    mcp_loading = forms.ChoiceField(required=False, choices=[(word, word) for word in agents.MCP_LOADINGS])
    protected = forms.BooleanField(required=False)
    was = Document(required=False)

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
        if typed["mcp_loading"] == agents.MCP_LOADINGS[0]:
            # As an entry says it: what is usual is left out.
            typed["mcp_loading"] = ""
        entry = {key: typed[key] or None for key in self.KEYS}
        was = given["was"]
        return {
            "changes": {key: value for key, value in entry.items() if value != was[key]},
            "was": {key: was[key] for key, value in entry.items() if value != was[key]},
            "confirm": given["confirm"],
            "reason": given["reason"],
        }


class Operators(Change):
    """Which users shall operate an agent, and which of them the page showed (``was``)."""

    user = Names(required=False)
    was = Names(required=False)


class Archiving(Change):
    """Whether an agent shall be archived."""

    archived = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])


class Copy(forms.Form):
    """The key of an agent that is to be like another one."""

    key = forms.CharField(max_length=200)


class AgentsFilter(forms.Form):
    """What narrows and sorts the list of agents."""

    q = forms.CharField(required=False, max_length=200)
    kind = forms.CharField(required=False, max_length=20)
    loadout = forms.CharField(required=False, max_length=64)
    archived = forms.BooleanField(required=False)
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
    unused = forms.ChoiceField(required=False, choices=[("all", "all")])


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
    key = forms.CharField(required=False, max_length=64)
    via = forms.CharField(required=False, max_length=7)
    batch = forms.UUIDField(required=False)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=1)


class HistoryFilter(ChangesFilter):
    """What narrows the log of one agent."""


class Comparison(forms.Form):
    """Which two sides are compared; the moment of a side, where it is wanted as it was."""

    a = forms.CharField(required=False, max_length=200)
    b = forms.CharField(required=False, max_length=200)
    a_at = forms.DateTimeField(required=False)
    b_at = forms.DateTimeField(required=False)
    show = forms.CharField(required=False, max_length=20)


class Rows(forms.MultipleChoiceField):
    """The rows of a comparison that are ticked, by their ids; which there are is not asked here."""

    def valid_value(self, value: str) -> bool:
        """Take any name."""
        return len(value) <= 200


class Copying(Change):
    """What is to be copied from one side to the other: the ticked rows, or all; and what of it was shown."""

    a = forms.CharField(max_length=200)
    b = forms.CharField(max_length=200)
    row = Rows(required=False)
    what = forms.CharField(required=False, max_length=10)
    seen = forms.CharField(required=False, max_length=64)


class Download(ChangesFilter):
    """What of the audit log is wanted as a file, and in which form."""

    form = forms.ChoiceField(choices=[("csv", "csv"), ("json", "json")])


class Sections(forms.MultipleChoiceField):
    """Names of sections of a belt; which there are is not asked here."""

    def valid_value(self, value: str) -> bool:
        """Take any name."""
        return len(value) <= 40


class Export(forms.Form):
    """Which sections are to go out, and in which form."""

    section = Sections(required=False)
    form = forms.ChoiceField(required=False, choices=[("yaml", "yaml"), ("json", "json")])


class Import(Change):
    """What was shown of the belt that is to come in: the digest of it, and the revision that it was checked beside."""

    revision = forms.IntegerField(min_value=0, max_value=2**63 - 1)
    shown = forms.CharField(max_length=64)


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


def kept(said: Mapping[str, Any]) -> str:
    """Write what :func:`said` gives as the query of an address."""
    return urlencode({name: value for name, value in said.items() if value})


def wrong(form: forms.Form) -> dict[str, str]:
    """Say what is wrong with a form, by the names of its fields."""
    return {name: " ".join(map(str, found)) for name, found in form.errors.items()}


def said(form: forms.Form) -> dict[str, Any]:
    """Give what is sound of a form that filters; empty where a field is not given or makes no sense."""
    form.is_valid()
    return {name: form.cleaned_data.get(name) or "" for name in form.fields}
