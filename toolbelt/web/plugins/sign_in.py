"""Signing in at a server: the way to its authorization server, the way back, and signing out.

The way there is a page with a link, and no redirect: the server names where it leads, so the person sees that first.
"""

from __future__ import annotations

import urllib.parse

from django import forms
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from toolbelt.control.people import rights
from toolbelt.control.servers import plugin_overview, sign_ins
from toolbelt.runtime.upstream import server_lists
from toolbelt.web.kit import forms as kit
from toolbelt.web.kit import http, notices, pieces, responses, texts, titles
from toolbelt.web.plugins import listing

REFUSAL = "Not signed in"


class CameBack(kit.Change):
    """With what a person comes back from an authorization server."""

    state = forms.CharField(max_length=200)
    code = forms.CharField(required=False, max_length=4000)
    error = forms.CharField(required=False, max_length=200)
    error_description = forms.CharField(required=False, max_length=2000)
    iss = forms.CharField(required=False, max_length=2000)

    def read(self) -> sign_ins.CameBack:
        """Return it. Raise errors.Invalid."""
        data = self.checked()
        words = {name: data[name] for name in ("state", "code", "error", "error_description")}
        return sign_ins.CameBack(**words, iss=data["iss"] or None)


@never_cache
@require_POST
@permission_required(listing.CHANGE, raise_exception=True)
def begin(request: http.Request, plugin: str) -> HttpResponse:
    """Show where the person has to sign in."""
    return _begin(request, plugin, _home(plugin), is_own=False)


@never_cache
@require_POST
def begin_own(request: http.Request, plugin: str) -> HttpResponse:
    """Show where a person has to sign in for the calls of their own clients."""
    if not rights.may_use_any(request.user):
        raise PermissionDenied
    return _begin(request, plugin, reverse("web:account"), is_own=True)


def _begin(request: http.Request, plugin: str, home: str, *, is_own: bool) -> HttpResponse:
    responses.declare(request, home, refusal=REFUSAL)
    begun = sign_ins.begin(
        plugin,
        _person(request),
        redirect_uri=request.build_absolute_uri(reverse("web:signed_in")),
        environ=server_lists.environ_of(plugin),
        is_own=is_own,
    )
    return render(request, "plugins/leave.html", {"page": _Leaving(plugin, begun, home, is_own=is_own)})


@never_cache
@require_GET
def come_back(request: http.Request) -> HttpResponse:
    """Store the sign-in of the person who began it; one for all agents also starts listing the server's tools."""
    home = reverse("web:plugins") if request.user.has_perm(listing.CHANGE) else reverse("web:account")
    responses.declare(request, home, refusal=REFUSAL)
    finished = sign_ins.finish(responses.write(request), _person(request), CameBack(request.GET).read())
    plugin = finished.plugin
    if finished.is_own:
        text = f"Signed in at {titles.label('plugin', plugin)}. Calls of your clients use this account."
        responses.keep_notice(request, notices.Notice(text=text))
        return responses.see_other(request, reverse("web:account"))
    text = f"Signed in at {titles.label('plugin', plugin)}. New tools are unavailable until you approve them."
    responses.keep_notice(request, notices.Notice(text=text))
    home = reverse("web:plugin", args=[plugin])
    return responses.see_other(request, f"{home}?{listing.start_refresh(request, [plugin])}")


@require_POST
@permission_required(listing.CHANGE, raise_exception=True)
def end(request: http.Request, plugin: str) -> HttpResponse:
    """Forget the sign-in."""
    responses.declare(request, _home(plugin), refusal="Not signed out")
    was_signed_in = sign_ins.end(responses.write(request), plugin)
    label = titles.label("plugin", plugin)
    text = f"Signed out at {label}." if was_signed_in else f"No changes: no one is signed in at {label}."
    responses.keep_notice(request, notices.Notice(text=text))
    home = reverse("web:plugin", args=[plugin])
    return responses.see_other(request, f"{home}?{listing.start_refresh(request, [plugin])}")


@require_POST
def end_own(request: http.Request, plugin: str) -> HttpResponse:
    """Forget the person's own sign-in."""
    responses.declare(request, reverse("web:account"), refusal="Not signed out")
    was_signed_in = sign_ins.end(responses.write(request), plugin, request.user.pk)
    label = titles.label("plugin", plugin)
    text = f"Signed out at {label}." if was_signed_in else f"No changes: you are not signed in at {label}."
    responses.keep_notice(request, notices.Notice(text=text))
    return responses.see_other(request, reverse("web:account"))


def is_shown(provider: plugin_overview.Provider) -> bool:
    """Return whether the page of a plugin says something of a sign-in."""
    settings = provider.connection
    return settings is not None and (bool(settings.sign_in) or provider.state == "sign-in-needed")


class Part(pieces.View):
    """The sign-in at a server, and what the reader may do about it."""

    def __init__(self, user: rights.User, provider: plugin_overview.Provider) -> None:
        found = sign_ins.find(provider.plugin.name)
        settings = provider.connection
        self.is_for_each_person = settings is not None and settings.sign_in == "person"
        self.plugin = provider.plugin.name
        self.may_change = user.has_perm(listing.CHANGE)
        self.found = found
        self.demanded = texts.visible(found.demanded) if found is not None else ""
        self.is_needed = found is None or bool(found.needed) or provider.state == "sign-in-needed"
        self.issuer = texts.visible(found.issuer) if found is not None else ""
        self.scopes = texts.visible(found.scopes) if found is not None else ""


class _Leaving(pieces.Page):
    """Where a person is sent, and what they are asked for there."""

    def __init__(self, plugin: str, begun: sign_ins.Begun, back: str, *, is_own: bool) -> None:
        self.back, self.is_own = back, is_own
        self.plugin, self.title = plugin, titles.label("plugin", plugin)
        self.url, self.confirms = begun.url, begun.confirms
        self.host, *named = map(_host, (begun.url, begun.token_endpoint, begun.issuer))
        # A server could lead to an address that people know, and have the answer passed to one of its own.
        self.others = [host for host in dict.fromkeys(named) if host != self.host]
        self.scopes = [texts.visible(scope) for scope in begun.scopes.split()]


def _host(url: str) -> str:
    return texts.visible(urllib.parse.urlsplit(url).netloc)


def _person(request: http.Request) -> sign_ins.Person:
    return sign_ins.Person(user=request.user, session=request.session.session_key or "")


def _home(plugin: str) -> str:
    return f"{reverse('web:plugin', args=[plugin])}#sign-in"
