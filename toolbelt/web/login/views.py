"""The login, which returns to what was entered before it expired, and the way to the provider and back."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth import decorators, forms
from django.contrib.auth import views as auth
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from toolbelt import conf
from toolbelt.control.people import second_factors
from toolbelt.web.kit import http, kept_forms, notices, responses
from toolbelt.web.login import browsers, refusals, second_factor


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
    authentication_form: Any = Login
    redirect_authenticated_user = True
    request: http.Request

    def form_valid(self, form: Any) -> HttpResponse:
        """Log in, or ask for the second factor of a person who has one."""
        user = form.get_user()
        # Who adds a factor at the same moment either makes this login ask for it, or finds this login and ends it.
        with second_factors.one_at_a_time(user):
            if not second_factors.are_asked(user.pk):
                response = self.log_in(form)
                browsers.note(self.request)
                if second_factors.is_required(user):
                    second_factor.demand(self.request)
                return response
        second_factor.wait(self.request, user)
        return _ask_second_factor(self.request)

    def log_in(self, form: Any) -> HttpResponse:
        """Log in, and offer the form that was kept."""
        kept = kept_forms.read(self.request.POST.get(kept_forms.FIELD, ""))
        response = super().form_valid(form)
        second_factor.confirm(self.request)
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


class SecondFactorView(LoginView):
    """The second step of a login."""

    authentication_form = second_factor.Code
    template_name = "login_second_factor.html"

    @method_decorator(decorators.login_not_required)
    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Begin again if no one has given a password here lately."""
        if not request.user.is_authenticated and second_factor.pending(request) is None:
            text = "Enter your password again: a login must be finished within five minutes."
            if request.method == "POST":
                return refusals.show(request, text, 403)
            return auth.redirect_to_login("/")
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        """Log in."""
        return self.log_in(form)

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add who logs in, and what they have."""
        user = second_factor.pending(self.request)
        factors = second_factors.of_user(user.pk)
        return super().get_context_data(person=user.get_username(), factors=factors, **context)


class PasskeyView(LoginView):
    """A login with a passkey alone, which asks for the person's finger or PIN."""

    authentication_form = second_factor.Passkey
    # The page that asks who is logged in asks for a passkey, too.
    redirect_authenticated_user = False

    def get(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return what the page's script asks the browser."""
        return JsonResponse(second_factor.passkey_to_log_in())

    def form_valid(self, form: Any) -> HttpResponse:
        """Log in."""
        return self.log_in(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the login page, with why."""
        return refusals.show(self.request, second_factor.WRONG_PASSKEY, 403)


def _ask_second_factor(request: http.Request) -> HttpResponse:
    """Show the second step as the answer to the first one: its page keeps what the first one did."""
    view = SecondFactorView()
    view.setup(request)
    return view.render_to_response(view.get_context_data(form=second_factor.Code(request)))


@decorators.login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def of_admin(request: http.Request) -> HttpResponse:
    """Lead from the admin's own login to this one. Raise PermissionDenied for a person without access to the admin."""
    if request.user.is_authenticated:
        raise PermissionDenied
    return auth.redirect_to_login(request.GET.get("next", reverse("admin:index")))


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
