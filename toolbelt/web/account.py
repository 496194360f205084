"""The user's own account: permissions, preferences, and the password."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import structlog
from django.contrib import auth
from django.contrib.auth import forms as auth_forms
from django.contrib.auth import models as auth_models
from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import alerts
from toolbelt.control.people import logins, provider, rights, roles, second_factors, users
from toolbelt.control.people import preferences as stored_preferences
from toolbelt.control.people import tokens as issued
from toolbelt.control.reports import queries
from toolbelt.control.servers import sign_ins
from toolbelt.core import alerts as alert_values
from toolbelt.web import tokens
from toolbelt.web.kit import audit_words, forms, http, notices, pieces, preferences, responses, words
from toolbelt.web.login import browsers, second_factor

MAX_CHANGES = 8
# The kinds of entries, in the order of the pages, by the names in their permissions.
_KINDS: Mapping[str, str] = {
    "agent": "Agents, their switches and overrides",
    "agentsession": "Sessions",
    "toolkit": "Toolkits",
    "tool": "Tools",
    "loadout": "Loadouts",
    "subapp": "Sub-apps",
    "gaterule": "Rules",
    "plugin": "Plugins and servers",
    "category": "Categories",
    "callrecord": "Calls",
    "auditentry": "Changes",
    "apitoken": "API tokens",
    "clientconnection": "Connections of clients",
}
# What is said of when alerts are sent, and the choices.
_ALERTS: Mapping[str, str] = {
    "now": "Alerts are sent to you immediately.",
    "daily": "Alerts are sent to you once a day.",
    "": "No alerts are sent to you.",
}
_TIMES = {"now": "Immediately", "daily": f"One mail a day, at {alert_values.DIGEST_HOUR:02}:00 UTC"}
_VERBS: Mapping[str, str] = {"view": "see", "add": "add", "change": "change", "delete": "remove"}
# Every user sees these.
_VISIBLE_TO_ALL = frozenset({"agent", "toolkit", "tool", "auditentry"})
# Where on the page they are.
_LOGINS = "/account/#logins"
_log = structlog.get_logger(__name__)


class AnotherPassword(forms.Fields, auth_forms.PasswordChangeForm):
    """Django's form. The old password is checked like a login, so that guesses are limited in the same way."""

    error_messages = {
        **auth_forms.PasswordChangeForm.error_messages,
        "password_incorrect": "The password is incorrect.",
        "password_mismatch": "The passwords do not match.",
    }

    def __init__(self, request: http.Request, data: Any = None) -> None:
        self._request = request
        super().__init__(cast(auth_models.User, request.user), data)
        for name, label in (
            ("old_password", "Current password"),
            ("new_password1", "New password"),
            ("new_password2", "Repeat the new password"),
        ):
            self.fields[name].label, self.fields[name].help_text = label, ""
            self.fields[name].widget.attrs |= {"required": True, "autofocus": False}
        self.fields["new_password1"].widget.attrs["aria-describedby"] = "password-rules"

    def clean_old_password(self) -> str:
        """Check the password by logging in with it."""
        password: str = self.cleaned_data["old_password"]
        user = auth.authenticate(self._request, username=self.user.get_username(), password=password)
        if user is None or user.pk != self.user.pk:
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return password


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    return _render(request, AnotherPassword(request))


@require_POST
def change_time_zone(request: http.Request) -> HttpResponse:
    """Set the time zone of pages: the posted one, or the browser's if it is empty."""
    responses.declare(request, reverse("web:account"))
    zone = request.POST.get("zone", "")
    preferences.choose(request, "time_zone", zone)
    zone_text = f"in {zone}" if zone else "in the time zone of your browser"
    return responses.respond(request, notices.Notice(text=f"Times are shown {zone_text}."))


@require_POST
def change_density(request: http.Request) -> HttpResponse:
    """Set the density of rows."""
    responses.declare(request, reverse("web:account"))
    density = request.POST.get("density", "")
    preferences.choose(request, "density", density)
    return responses.respond(request, notices.Notice(text=f"Rows are {density or 'comfortable'}."))


@require_POST
def change_alerts(request: http.Request) -> HttpResponse:
    """Set when alerts are sent to the user's mail address."""
    responses.declare(request, reverse("web:account"))
    when = request.POST.get("alerts", "")
    preferences.choose(request, "alerts", when)
    return responses.respond(request, notices.Notice(text=_ALERTS[when]))


@require_POST
@sensitive_post_parameters()
def change_password(request: http.Request) -> HttpResponse:
    """Change the password, which logs the user out on every other browser."""
    responses.declare(request, reverse("web:account"))
    form = AnotherPassword(request, request.POST)
    if not form.is_valid():
        return _render(request, form, status=422)
    user = form.save()
    auth.update_session_auth_hash(request, user)
    users.own_password_changed(responses.write(request), user, request.session.session_key)
    _log.info("password_changed", user=user.get_username())
    text, detail = "Password changed.", "You were logged out on your other browsers."
    return responses.respond(request, notices.Notice(text=text, detail=detail))


@require_POST
def end_login(request: http.Request, login: int) -> HttpResponse:
    """Log the user out on one of their browsers."""
    responses.declare(request, _LOGINS)
    logins.end(responses.write(request), request.user, login)
    return responses.respond(request, notices.Notice(text="You are logged out on that browser."))


@require_POST
def end_other_logins(request: http.Request) -> HttpResponse:
    """Log the user out on all browsers but this one."""
    responses.declare(request, _LOGINS)
    count = logins.end_others(responses.write(request), request.user, request.session.session_key)
    text = f"You are logged out on {words.counted(count, 'other browser')}."
    return responses.respond(request, notices.Notice(text=text))


def _render(request: http.Request, form: AnotherPassword, status: int = 200) -> HttpResponse:
    return responses.show(request, _Page(request, form, status), "account/account.html", status=status)


class _Page(pieces.Page):
    """The account of the user."""

    def __init__(self, request: http.Request, form: AnotherPassword, status: int = 200) -> None:
        user = cast(auth_models.User, request.user)
        name, may_undo = user.get_username(), rights.undo_check(user)
        recent = queries.changes(actor=name, actor_kind=("person", "token"), folded=True, size=MAX_CHANGES)
        entries = tuple(audit_words.Line(entry, may_undo(entry)) for entry in recent.entries)
        zone = preferences.browser_zone(request) or timezone.get_default_timezone_name()
        self.user = user
        self.form = form
        self.is_given = user.pk in provider.given_to()
        self.has_password = second_factor.may_use_password(user)
        self.factors = second_factors.of_user(user.pk) if self.has_password else second_factors.Factors()
        self.roles = tuple(user.groups.order_by("name").values_list("name", flat=True))
        self.agents = () if user.has_perm(rights.FLIP) else tuple(roles.agents_of(user.pk))
        self.rights = () if user.is_superuser else tuple(_rights(user.get_all_permissions()))
        self.zones = pieces.choices(
            {
                name: name.replace("_", " ")
                for name in sorted(stored_preferences.choices("time_zone"))
                if "/" in name or name == "UTC"
            },
            preferences.chosen(request, "time_zone"),
            f"Browser: {zone.replace('_', ' ')}",
        )
        has_alerts = alerts.sends_to_people()
        when = preferences.chosen(request, "alerts")
        self.alert_times = pieces.choices(_TIMES, when, "Never") if has_alerts else ()
        self.password_rules = tuple(password_validation.password_validators_help_texts())
        here = request.session.session_key or ""
        self.logins = [(browsers.name(login.browser), login) for login in logins.of_user(user.pk, here)]
        self.servers = sign_ins.own(user.pk) if rights.may_use_any(user) else []
        self.session_ends = request.session.get_expiry_date()
        self.tokens = tuple(tokens.Line(token) for token in issued.all_tokens() if token.user == name)
        self.entries = entries
        self.more_entries = f"All {words.number(recent.total)}" if recent.total > len(recent.entries) else ""


def _rights(permissions: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return the permissions in words, by kind. Permissions without a word here are omitted."""
    granted = {permission.removeprefix("toolbelt.") for permission in permissions}
    for kind, label in _KINDS.items():
        verbs = [
            verb
            for operation, verb in _VERBS.items()
            if f"{operation}_{kind}" in granted
            or (operation == "view" and (kind in _VISIBLE_TO_ALL or f"tool_change{kind}" in granted))
        ]
        yield label, ", ".join(verbs) or "nothing"
