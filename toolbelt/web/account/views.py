"""One's own account: who one is here, what one may, and another password."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import structlog
from django.contrib import auth
from django.contrib.auth import forms as auth_forms
from django.contrib.auth import models as auth_models
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights
from toolbelt.web.account import view_model
from toolbelt.web.kit import http, notices, responses

_log = structlog.get_logger(__name__)


class AnotherPassword(auth_forms.PasswordChangeForm):
    """Django's form. The old password is asked for as a login asks, so that guessing it is stopped as there."""

    error_messages = {
        **auth_forms.PasswordChangeForm.error_messages,
        "password_incorrect": "The password is incorrect.",
        "password_mismatch": "The passwords do not match.",
    }

    def __init__(self, request: http.Request, *args: Any, **options: Any) -> None:
        self._request = request
        super().__init__(cast(auth_models.User, request.user), *args, **options)

    def clean_old_password(self) -> str:
        """Log in with it, in effect."""
        given: str = self.cleaned_data["old_password"]
        found = auth.authenticate(self._request, username=self.user.get_username(), password=given)
        if found is None or found.pk != self.user.pk:
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return given


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    return _shown(request, notice=responses.pop_notice(request)[0])


@require_POST
@sensitive_post_parameters()
def change_password(request: http.Request) -> HttpResponse:
    """Take another password; every other browser of this login is logged out by it."""
    form = AnotherPassword(request, request.POST)
    if not form.is_valid():
        found = {name: [str(one) for one in told] for name, told in form.errors.items()}
        return _shown(request, problems=found, status=422)
    user = form.save()
    auth.update_session_auth_hash(request, user)
    _log.info("password_changed", user=user.get_username())
    responses.declare(request, reverse("web:account"))
    text, detail = "Password changed.", "You were logged out on your other browsers."
    return responses.respond(request, notices.Notice(text=text, detail=detail))


def _shown(
    request: http.Request,
    *,
    notice: notices.Notice | None = None,
    problems: Mapping[str, Iterable[str]] | None = None,
    status: int = 200,
) -> HttpResponse:
    shown = view_model.page(
        cast(auth_models.User, request.user),
        session_ends=request.session.get_expiry_date(),
        here=reverse("web:account"),
        notice=notice,
        may_see_tokens=rights.may_read(request.user, "api_token"),
        may_revoke=request.user.has_perm(rights.permission("change", "token")),
        may_undo=rights.undo_check(request.user),
        problems=problems,
    )
    return render(request, "account/account.html", {"page": shown}, status=status)
