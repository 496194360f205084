"""The forms of the plugins' pages."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import forms
from django.utils import timezone

from toolbelt.control.servers import plugin_overview
from toolbelt.core import connections, errors
from toolbelt.web.access import blocking
from toolbelt.web.kit import fields, filters, saved_views
from toolbelt.web.kit import forms as kit

# Pages do not wait for a refresh that began earlier than this.
MAX_WAIT = dt.timedelta(hours=1)
# /plugins/add/ is the page that adds a server, so no plugin can have this name.
RESERVED = "add"
SHARING_LABELS = {
    "shared": "Shared by everyone",
    "agent": "One for each agent",
    "session": "One for each session",
}

SIGN_IN_LABELS = {
    "shared": "An operator, for all agents",
    "person": "Each person, for their own clients",
}
REVISION_LABELS = {
    "2025-11-25": "2025-11-25, or an earlier one",
    "2026-07-28": "2026-07-28",
}


class Filter(forms.Form):
    """The filters of the list, and the time and server of a requested refresh."""

    q = fields.Query()
    show = forms.CharField(required=False, max_length=20)
    asked = forms.IntegerField(required=False, min_value=0, max_value=10**14)
    of = forms.CharField(required=False, max_length=64)
    all = forms.BooleanField(required=False)

    def values(self) -> dict[str, Any]:
        """Return the valid values, with ``asked`` as a datetime; None if there is no refresh to wait for."""
        values = filters.read(self)
        at = dt.datetime.fromtimestamp((values["asked"] or 0) / 1000, tz=dt.UTC)
        return values | {"asked": at if timezone.now() - MAX_WAIT < at <= timezone.now() else None}


VIEWS = saved_views.FilteredList(page="plugins", form=Filter, names=("q", "show"))


class Switch(blocking.Ends, kit.Change):
    """A switch of a plugin, its requested state, until when it is blocked, and the state that the page showed."""

    control = forms.ChoiceField(choices=[(name, name) for name in plugin_overview.CONTROLS])
    on = fields.State(("true", "false"))
    was = fields.State(("true", "false"))


class Plugin(kit.Fields, kit.Change):
    """A form that shows the problems of a plugin's entry at the fields."""

    def __init__(self, *args: Any, plugin: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.plugin = plugin or str(self.data.get("name", ""))

    def field_at(self, path: str) -> str | None:
        """Return the field that shows the problems of a path in the entry."""
        key = path.removeprefix(f"plugins.{self.plugin}").removeprefix(".")
        field = key.removeprefix("upstream.").partition("[")[0].partition(".")[0]
        if key.startswith("upstream") and field not in self.fields:
            return "url"
        return super().field_at(field or ("name" if path else ""))


def _number(maximum: int, default: int | str, *, label: str, help_text: str) -> forms.IntegerField:
    """Return a field for an integer from 1 to ``maximum``; empty means the default."""
    widget = forms.NumberInput({"placeholder": default, "inputmode": "numeric"})
    return forms.IntegerField(
        required=False, min_value=1, max_value=maximum, label=label, widget=widget, help_text=help_text
    )


class Connection(Plugin):
    """The connection of a server: its URL and headers, one per line; and the connection that the page showed."""

    url = forms.CharField(
        max_length=2000,
        label="URL",
        widget=forms.URLInput({"placeholder": "https://files.example/mcp"}),
        help_text="The server's Streamable HTTP endpoint.",
    )
    headers = forms.CharField(
        required=False,
        max_length=8000,
        widget=forms.Textarea(
            {
                "rows": 3,
                "cols": False,
                "class": "mono",
                "spellcheck": "false",
                "placeholder": "Authorization: Bearer ${MCP_FILES_TOKEN}",
            }
        ),
        help_text="One per line. Never enter secrets here: set an environment variable on the server, list its name in"
        " TOOLBELT_WEB_VARIABLES, and write ${NAME}.",
    )
    sharing = forms.ChoiceField(
        required=False,
        label="Connections",
        choices=[
            ("", "Default (one for each session if the server has sessions)"),
            *((who, SHARING_LABELS[who]) for who in connections.SHARING),
        ],
        help_text="Agents that share a connection share the state that the server keeps for it.",
    )
    idle = _number(
        connections.MAX_IDLE,
        connections.IDLE,
        label="Idle time in seconds",
        help_text="The connection of an agent or session closes after this time without a call.",
    )
    max_connections = _number(
        connections.MAX_CONNECTIONS_LIMIT,
        connections.MAX_CONNECTIONS,
        label="Maximum connections",
        help_text="The most connections that each process keeps open to this server.",
    )
    revision = forms.ChoiceField(
        required=False,
        label="Revision of MCP",
        choices=[
            ("", "What the server answers"),
            *((name, REVISION_LABELS[name]) for name in connections.REVISIONS),
        ],
        help_text="For a server that is probed in vain, or lists nothing in the revision that it answers.",
    )
    result_bytes = _number(
        connections.MAX_BYTES,
        "as for all servers",
        label="Largest result in bytes",
        help_text="A larger result of a tool is refused.",
    )
    resource_bytes = _number(
        connections.MAX_BYTES,
        "as for all servers",
        label="Largest resource in bytes",
        help_text="A larger resource, such as the screen of an app, is refused.",
    )
    sign_in = forms.ChoiceField(
        required=False,
        label="Sign-in with OAuth",
        choices=[("", "None"), *((who, SIGN_IN_LABELS[who]) for who in connections.SIGN_INS)],
        help_text="For a server that wants OAuth. Then press Sign in on its page.",
    )
    client_id = forms.CharField(
        required=False,
        max_length=500,
        label="Client id",
        help_text="Of a client that you registered there. Leave empty, and Toolbelt registers itself.",
    )
    client_secret = forms.CharField(
        required=False,
        max_length=500,
        label="Client secret",
        widget=forms.TextInput({"placeholder": "${MCP_FILES_SECRET}"}),
        help_text="As a variable, as in a header.",
    )
    issuer = forms.CharField(
        required=False,
        max_length=2000,
        label="Authorization server",
        help_text="The issuer for which the client is; no other gets its secret. Leave empty to confirm it when you"
        " sign in.",
    )
    scopes = forms.CharField(
        required=False,
        max_length=2000,
        label="Scopes",
        help_text="Separated by spaces. Leave empty to ask for those that the server names.",
    )
    was = fields.Document(required=False)

    def clean_headers(self) -> dict[str, str]:
        """Return the headers of the lines."""
        headers = {}
        for line in filter(None, map(str.strip, self.cleaned_data["headers"].splitlines())):
            name, is_pair, value = line.partition(":")
            if not is_pair or not name.strip():
                raise forms.ValidationError(
                    "%(line)r is not a header: write a name, a colon and a value.", params={"line": line[:80]}
                )
            headers[name.strip()] = value.strip()
        return headers

    def clean_was(self) -> dict[str, Any]:
        """Accept only a mapping."""
        was = self.cleaned_data["was"]
        return was if isinstance(was, dict) else {}

    def message_of(self, problem: errors.Problem) -> str:
        """Return the message of a problem, with the name of its header."""
        _, is_header, name = problem.path.rpartition("headers.")
        is_named = not is_header or name in problem.message
        return problem.message if is_named else f"{name}: {problem.message}"

    def connection(self) -> dict[str, Any]:
        """Return the connection in the form of a belt."""
        data = self.cleaned_data
        connection = {"url": data["url"], "headers": data["headers"], **self.connections_by()}
        return {name: value for name, value in connection.items() if value}

    def connections_by(self) -> dict[str, Any]:
        """Return the sharing, idle time, revision and limits; None for a default."""
        return {
            field.name: self.cleaned_data[field.name] or None
            for field in (*self.limits, *self.sign_in_fields)
            if field.name in self.data
        }

    @property
    def limits(self) -> list[forms.BoundField]:
        """Return the fields that few servers need."""
        return [self[name] for name in connections.RARE_FIELDS]

    @property
    def sign_in_fields(self) -> list[forms.BoundField]:
        """Return the fields of the sign-in."""
        return [self[name] for name in connections.SIGN_IN_FIELDS]

    @property
    def shows_sign_in(self) -> bool:
        """Return whether one of them has a value or an error."""
        return any(field.value() or field.errors for field in self.sign_in_fields)

    @property
    def shows_limits(self) -> bool:
        """Return whether one of them has a value or an error."""
        return any(field.value() or field.errors for field in self.limits)


class NewPlugin(Plugin):
    """A new plugin."""

    name = forms.CharField(
        max_length=200, help_text="Its name for operators and loadouts: letters, digits, _, . and -."
    )
    namespace = forms.CharField(
        required=False,
        max_length=200,
        help_text="The prefix of its tools' names, as in files__read. Leave empty to derive it from the name.",
    )
    title = forms.CharField(required=False, max_length=200, help_text="Shown in the dashboard.")

    def clean_name(self) -> str:
        """Reject the reserved name."""
        name: str = self.cleaned_data["name"]
        if name == RESERVED:
            raise forms.ValidationError("This name is reserved: choose another name.")
        return name


class Server(NewPlugin, Connection):
    """A new server."""


class ClientPlugin(NewPlugin):
    """A new client plugin, and the agents whose tokens may declare its tools."""

    namespace = forms.CharField(
        required=False,
        max_length=200,
        help_text="The prefix of its tools' names, as in shop__refund. Leave empty to use the names that the program"
        " declares.",
    )
    agent = fields.Names(required=False)

    def field_at(self, path: str) -> str | None:
        """Return the field of a path; the field of the declaring agents is ``agent``."""
        return "agent" if ".declared_by" in path else super().field_at(path)


class Declarers(kit.Change):
    """The agents whose tokens may declare the tools of a client plugin, and those that the page showed."""

    agent = fields.Names(required=False)
    was = fields.Names(required=False)
