"""Adding upstream servers: one with a form, or those of an MCP client's configuration file, after a preview.

No secret of a file is stored or shown.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from django import forms as django_forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control.catalog import connection_policy
from toolbelt.control.people import rights
from toolbelt.control.servers import upstream_servers
from toolbelt.control.servers.client_files import importing, reading
from toolbelt.core import errors
from toolbelt.web.kit import fields, http, notices, pieces, responses, words
from toolbelt.web.kit import forms as kit
from toolbelt.web.plugins import forms, listing

ADD = rights.permission("add", "plugin")


class File(kit.Fields, kit.Change):
    """A client's file, uploaded or pasted. Its text contains secrets, so no page shows it again."""

    file = django_forms.FileField(required=False, max_length=200)
    text = django_forms.CharField(required=False, max_length=reading.MAX_CHARACTERS, strip=False)

    def examine(self) -> importing.Preview:
        """Return a preview of the servers in the file. Raise errors.Invalid if it cannot be read."""
        data = self.checked()
        upload, text = data["file"], data["text"]
        is_toml = upload is not None and upload.name.endswith(".toml")
        if upload is not None:
            text = reading.text_of(upload)
        if not text.strip():
            raise errors.Invalid.of("Choose a file, or paste its text.")
        return importing.examine(text, is_toml=is_toml)


class Chosen(kit.Change):
    """The servers of the preview, without secrets, and the names of those to add."""

    servers = fields.Document()
    name = fields.Names(required=False)

    def converted(self) -> list[importing.Converted]:
        """Return the chosen servers. Raise errors.Invalid if none is chosen."""
        data = self.checked()
        servers = data["servers"]
        if not isinstance(servers, dict):
            raise errors.Invalid.of("The preview is incomplete: start again.")
        chosen = [importing.chosen(name, servers[name]) for name in data["name"] if name in servers]
        if not chosen:
            raise errors.Invalid.of("No server was chosen.")
        return chosen


@require_safe
@permission_required(ADD, raise_exception=True)
def add(request: http.Request) -> HttpResponse:
    """Show the form for a server."""
    return _form(request, forms.Server())


@require_POST
@permission_required(ADD, raise_exception=True)
def create(request: http.Request) -> HttpResponse:
    """Add the server, and start listing its tools."""
    form = forms.Server(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, default_field=None)
        return _form(request, form, status=422)

    responses.declare(request, reverse("web:plugins"), form=show_again)
    data = form.checked()
    name = data["name"]
    upstream_servers.add(
        responses.write(request, data),
        name,
        form.connection(),
        namespace=data["namespace"] or None,
        title=data["title"],
    )
    text = f"{name} added. Its tools are unavailable until you approve them."
    responses.keep_notice(request, notices.Notice(text=text))
    home = reverse("web:plugin", args=[name])
    return responses.see_other(request, f"{home}?{listing.start_refresh(request, [name])}")


@require_safe
@permission_required(ADD, raise_exception=True)
def page(request: http.Request) -> HttpResponse:
    """Show the form for a file."""
    return _show(request)


@require_POST
@permission_required(ADD, raise_exception=True)
def check(request: http.Request) -> HttpResponse:
    """Show a preview of the servers in the file, without storing anything."""
    _declare(request)
    return _show(request, preview=File(request.POST, request.FILES).examine())


@require_POST
@permission_required(ADD, raise_exception=True)
def save(request: http.Request) -> HttpResponse:
    """Add the chosen servers, all or none, and start listing their tools."""
    _declare(request)
    form = Chosen(request.POST)
    preview = importing.Preview(servers=tuple(form.converted()))
    names = importing.store(responses.write(request, form.cleaned_data), preview)
    text = f"{words.counted(len(names), 'server')} added. Their tools are unavailable until you approve them."
    responses.keep_notice(request, notices.Notice(text=text))
    on = [name for name in names if name not in preview.off]
    query = f"?{listing.start_refresh(request, on)}" if on else ""
    return responses.see_other(request, f"{reverse('web:plugins')}{query}")


def _declare(request: http.Request) -> None:
    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        return _show(request, problems=error.problems, status=status)

    responses.declare(request, reverse("web:import_servers"), form=show_again)


def _show(
    request: http.Request,
    *,
    preview: importing.Preview | None = None,
    problems: Sequence[errors.Problem] = (),
    status: int = 200,
) -> HttpResponse:
    page = _Page(request, preview, problems)
    return render(request, "plugins/import.html", {"page": page}, status=status)


class _Page(pieces.Page):
    """The form for a file, and the preview of the servers in it."""

    def __init__(
        self, request: http.Request, preview: importing.Preview | None, problems: Sequence[errors.Problem]
    ) -> None:
        self.problems, self.preview = problems, preview
        servers = preview.servers if preview is not None else ()
        valid = [server for server in servers if not server.problem]
        reasons = {server.name: _why_not_here(request, server) for server in valid}
        ready = [server for server in valid if not reasons[server.name]]
        self.ready = [(server, importing.connection_text(server)) for server in ready]
        self.variables = tuple(dict.fromkeys(name for server in ready for name in server.variables))
        self.elsewhere = [(server, reasons[server.name]) for server in valid if reasons[server.name]]
        self.refused = [server for server in servers if server.problem]
        self.servers = json.dumps({server.name: server.entry for server in ready})
        only = " ".join(f"--only {shlex.quote(server.source)}" for server, _ in self.elsewhere)
        self.command = f"{conf.COMMAND} mcp import FILE {only}"


def _why_not_here(request: http.Request, server: importing.Converted) -> str:
    """Return why a server can only be added on the command line; empty if it can be added here."""
    try:
        connection_policy.check_change(
            responses.actor(request), server.name, None, {"upstream": server.connection}
        )
    except errors.Refused as error:
        return str(error)
    return ""


def _form(request: http.Request, form: forms.Server, status: int = 200) -> HttpResponse:
    return responses.show(request, pieces.FormPage(form), "plugins/add.html", status=status)
