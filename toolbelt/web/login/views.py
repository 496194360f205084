"""The login, which returns to what was entered before it expired, and the way to the provider and back."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth import decorators, forms
from django.contrib.auth import views as auth
from django.http import Http404, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from toolbelt import conf
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


@decorators.login_not_required
@never_cache
@require_GET
def to_provider(request: http.Request) -> HttpResponse:
    """Lead a person to the provider. It is a link: the policy of our pages lets no form lead to another site."""
    response: HttpResponse = _provider().begin(request, secrets.token_urlsafe(32))
    return response


@decorators.login_not_required
@never_cache
@require_GET
def from_provider(request: http.Request) -> HttpResponse:
    """Log a person in who comes back from the provider."""
    response: HttpResponse = _provider().complete(request)
    return response


def _provider() -> Any:
    """Return the module of the provider, which needs the library's tables. Raise Http404 if there is no provider."""
    if not conf.SIGN_IN_ISSUER:
        raise Http404
    from toolbelt.web.login import provider

    return provider
