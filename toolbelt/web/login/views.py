"""The login, which returns to what was entered before it expired."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import forms
from django.contrib.auth import views as auth
from django.http import HttpResponse

from toolbelt.web.kit import http, kept_forms, notices, responses


class Login(forms.AuthenticationForm):
    """Django's form, whose messages name the fields as the page does."""

    error_messages = {
        **forms.AuthenticationForm.error_messages,
        "invalid_login": "The user name or the password is incorrect. Both are case-sensitive.",
    }


class LoginView(auth.LoginView):
    """Django's view. A form that the login page keeps is offered to be sent again, if the same person logs in.

    Logging in on another page makes this one's CSRF token invalid: see kept_forms.ask_after_login_elsewhere.
    """

    template_name = "login.html"
    authentication_form = Login
    redirect_authenticated_user = True
    request: http.Request

    def form_valid(self, form: forms.AuthenticationForm) -> HttpResponse:
        """Log in, and offer the form that was kept."""
        kept = kept_forms.read(self.request.POST.get(kept_forms.FIELD, ""))
        response = super().form_valid(form)
        if kept is None:
            return response
        if kept.person in ("", str(self.request.user.pk)):
            return kept_forms.ask(self.request, kept, self.get_success_url())
        text = "What was entered before the login was not sent, because another person had entered it."
        responses.keep_notice(self.request, notices.Notice(text=text, tone="refused"))
        return response

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add the form that the page keeps, after a login that failed."""
        kept = self.request.POST.get(kept_forms.FIELD, "")
        return super().get_context_data(kept=kept, is_expired=bool(kept), **context)
