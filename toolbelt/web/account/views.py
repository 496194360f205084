"""Your own account: what you may do, your preferences, and changing your password."""

from __future__ import annotations

from typing import Any, cast

import structlog
from django.contrib import auth
from django.contrib.auth import forms as auth_forms
from django.contrib.auth import models as auth_models
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights
from toolbelt.web.account import view_model
from toolbelt.web.kit import forms, http, notices, preferences, responses, time_zones

_log = structlog.get_logger(__name__)


class AnotherPassword(forms.Fields, auth_forms.PasswordChangeForm):
    """Django's form. The old password is checked as a login is, so that guessing it is limited in the same way."""

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
        given: str = self.cleaned_data["old_password"]
        user = auth.authenticate(self._request, username=self.user.get_username(), password=given)
        if user is None or user.pk != self.user.pk:
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return given


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    return _shown(request, AnotherPassword(request))


@require_POST
def change_time_zone(request: http.Request) -> HttpResponse:
    """Show times in another zone from now on: in the one that is sent, or in the browser's."""
    responses.declare(request, reverse("web:account"))
    zone = request.POST.get("zone", "")
    preferences.choose(request, "time_zone", zone)
    shown = f"in {zone}" if zone else "in the time zone of your browser"
    return responses.respond(request, notices.Notice(text=f"Times are shown {shown}."))


@require_POST
def change_density(request: http.Request) -> HttpResponse:
    """Show rows as dense as is sent from now on."""
    responses.declare(request, reverse("web:account"))
    density = request.POST.get("density", "")
    preferences.choose(request, "density", density)
    return responses.respond(request, notices.Notice(text=f"Rows are {density or 'comfortable'}."))


@require_POST
@sensitive_post_parameters()
def change_password(request: http.Request) -> HttpResponse:
    """Change the password, which logs the user out on every other browser."""
    responses.declare(request, reverse("web:account"))
    form = AnotherPassword(request, request.POST)
    if not form.is_valid():
        return _shown(request, form, status=422)
    user = form.save()
    auth.update_session_auth_hash(request, user)
    _log.info("password_changed", user=user.get_username())
    text, detail = "Password changed.", "You were logged out on your other browsers."
    return responses.respond(request, notices.Notice(text=text, detail=detail))


def _shown(request: http.Request, form: AnotherPassword, status: int = 200) -> HttpResponse:
    shown = view_model.page(
        cast(auth_models.User, request.user),
        zone=preferences.chosen(request, "time_zone"),
        browser_zone=time_zones.browser_zone(request),
        session_ends=request.session.get_expiry_date(),
        may_see_tokens=rights.may_read(request.user, "api_token"),
        may_undo=rights.undo_check(request.user),
    )
    shown.form = form
    return responses.show(request, shown, "account/account.html", status=status)
