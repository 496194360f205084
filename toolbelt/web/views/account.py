"""One's own account: who one is here, what one may, and another password."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import structlog
from django.contrib import auth
from django.contrib.auth import forms as auth_forms
from django.contrib.auth import models as auth_models
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import rights
from toolbelt.web.pages import account
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering

_log = structlog.get_logger(__name__)


class AnotherPassword(auth_forms.PasswordChangeForm):
    """Django's form. The old password is asked for as a login asks, so that guessing it is stopped as there."""

    error_messages = {
        **auth_forms.PasswordChangeForm.error_messages,
        "password_incorrect": "That is not your password.",
        "password_mismatch": "The two are not the same.",
    }

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:
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
def page(request: HttpRequest) -> HttpResponse:
    """Show the page."""
    return _shown(request, notice=answering.kept(request)[0])


@require_POST
@sensitive_post_parameters()
def change_password(request: HttpRequest) -> HttpResponse:
    """Take another password; every other browser of this login is logged out by it."""
    form = AnotherPassword(request, request.POST)
    if not form.is_valid():
        found = {name: [str(one) for one in told] for name, told in form.errors.items()}
        return _shown(request, problems=found, status=422)
    user = form.save()
    auth.update_session_auth_hash(request, user)
    _log.info("password_changed", user=user.get_username())
    answering.keep(
        request,
        answers.Notice(text="Your password is changed.", detail="Your other browsers are logged out."),
    )
    response = redirect(reverse("web:account"))
    response.status_code = 303
    return response


def _shown(
    request: HttpRequest,
    *,
    notice: answers.Notice | None = None,
    problems: Mapping[str, Iterable[str]] | None = None,
    status: int = 200,
) -> HttpResponse:
    shown = account.page(
        cast(auth_models.User, request.user),
        session_ends=request.session.get_expiry_date(),
        here=reverse("web:account"),
        notice=notice,
        may_see_tokens=rights.may_read(request.user, "api_token"),
        may_revoke=request.user.has_perm(rights.to("change", "token")),
        may_undo=rights.undoable(request.user),
        problems=problems,
    )
    return render(request, "account/account.html", {"page": shown}, status=status)
