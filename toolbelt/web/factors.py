"""The user's second factors: setting up an authenticator app and passkeys, recovery codes, and removing them.

Each change needs a person who has just logged in, or confirms who they are. Recovery codes are only in the response to
the form that made them, and not in the session. So that response is a page, and not a redirect.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, cast

from django import forms
from django.contrib.auth import models as auth_models
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from toolbelt import conf
from toolbelt.control.people import logins, second_factors
from toolbelt.core import errors
from toolbelt.web.kit import fields, http, notices, pieces, responses
from toolbelt.web.kit import forms as kit
from toolbelt.web.login import second_factor

_SALT = "toolbelt.factors"
# How long a person has to set an app up, in seconds.
_SETUP_SECONDS = 900
_View = Callable[..., HttpResponse]


class Confirmation(kit.Fields):
    """Who is logged in, by the password, a code or a passkey. Guesses are limited like those of a login, and apart."""

    password = forms.CharField(
        required=False,
        strip=False,
        label="Password",
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    code = forms.CharField(
        required=False,
        max_length=40,
        label="Code of your app, or a recovery code",
        widget=forms.TextInput({"autocomplete": "one-time-code", "inputmode": "numeric"}),
    )
    credential = fields.Document(required=False, widget=forms.HiddenInput)

    def __init__(self, request: http.Request, data: Any = None) -> None:
        super().__init__(data)
        self._request = request

    def clean(self) -> dict[str, Any]:
        """Check what was sent."""
        data = self.cleaned_data
        if self.errors:
            return data
        if data["credential"]:
            passkey = second_factor.Passkey(self._request, self._request.POST)
            if not passkey.is_valid() or passkey.get_user() != self._request.user:
                self.add_error(None, second_factor.WRONG_PASSKEY)
        elif data["code"]:
            if why := second_factor.problem(self._request, self._request.user, data["code"], confirms=True):
                self.add_error("code", why)
        elif not second_factor.is_own_password(self._request, data["password"]):
            self.add_error("password", "The password is incorrect.")
        return data


class App(kit.Fields):
    """The first code of a new app. ``setup`` is its signed secret, which is stored nowhere before."""

    setup = forms.CharField(widget=forms.HiddenInput)
    code = forms.CharField(
        max_length=40,
        label="Code that the app shows now",
        widget=forms.TextInput(
            {"autocomplete": "one-time-code", "inputmode": "numeric", "autofocus": True, "required": True}
        ),
    )

    @classmethod
    def begun(cls, user: Any) -> App:
        """Return the form with a new secret."""
        return cls(initial={"setup": signing.dumps([user.pk, second_factors.new_secret()], salt=_SALT)})

    def secret(self, user: Any) -> str:
        """Return the secret that this form set up for the user; empty if it did not, or too long ago."""
        try:
            owner, secret = signing.loads(self["setup"].value() or "", salt=_SALT, max_age=_SETUP_SECONDS)
        except (signing.BadSignature, ValueError):
            return ""
        return secret if owner == user.pk else ""


class NewPasskey(kit.Fields):
    """What a device made, and how its owner calls it."""

    name = forms.CharField(
        required=False,
        max_length=second_factors.MAX_NAME,
        label="Name",
        help_text="Such as the device that it is on.",
        widget=forms.TextInput({"autofocus": True}),
    )
    credential = forms.CharField(required=False, widget=forms.HiddenInput)


class Name(kit.Change):
    """The new name of a passkey."""

    name = forms.CharField(required=False, max_length=second_factors.MAX_NAME)


def of_own_account(view: _View) -> _View:
    """Return the view for people with a password here who have just logged in, or confirm who they are first."""

    @functools.wraps(view)
    def guarded(request: http.Request, *args: Any, **values: Any) -> HttpResponse:
        _check_local(request)
        if not second_factor.is_confirmed(request):
            return second_factor.ask_to_confirm(request, _home())
        return view(request, *args, **values)

    return cast("_View", never_cache(guarded))


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: http.Request) -> HttpResponse:
    """Ask who is logged in, before a change of what they or others log in with.

    Whom the provider logs in does so again: they have no password here.
    """
    if request.method != "POST":
        if not conf.SIGN_IN_ISSUER:
            _check_local(request)
        return _show_confirmation(request, Confirmation(request), request.GET.get("next", ""))
    _check_local(request)
    form = Confirmation(request, request.POST)
    if not form.is_valid():
        return _show_confirmation(request, form, request.POST.get("next", ""), 422)
    second_factor.confirm(request)
    return responses.see_other(request, responses.back_url(request, _home()))


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@of_own_account
def app(request: http.Request) -> HttpResponse:
    """Set up an authenticator app."""
    user = request.user
    if request.method != "POST":
        if _own(request).app is not None:
            return redirect(_home())
        return responses.show(request, _AppPage(request, App.begun(user)), "account/app.html")
    form = App(request.POST)
    secret = form.secret(user)
    if not secret:
        text = "Setting up the app took too long. Nothing was changed: begin again."
        responses.keep_notice(request, notices.Notice(text=text, tone="refused"))
        return responses.see_other(request, reverse("web:add_app"))

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, default_field="code")
        return responses.show(request, _AppPage(request, form), "account/app.html", status=status)

    responses.declare(request, _home(), form=show_again)
    form.is_valid()
    codes = second_factors.add_app(responses.write(request), user, secret, form.cleaned_data.get("code", ""))
    return _set_up(request, "Authenticator app set up.", codes)


@require_http_methods(["GET", "HEAD", "POST"])
@of_own_account
def passkey(request: http.Request) -> HttpResponse:
    """Add a passkey."""
    user = request.user
    if request.method != "POST":
        return responses.show(request, _PasskeyPage(user, NewPasskey()), "account/passkey.html")
    form, checked = NewPasskey(request.POST), second_factor.NewPasskey(user=user, data=request.POST)
    if not second_factor.is_registration(checked):
        form.add_error(None, "Your device made no passkey that works here. Try again.")
        return responses.show(request, _PasskeyPage(user, form), "account/passkey.html", status=422)
    responses.declare(request, _home(), refusal="No passkey added")
    form.is_valid()
    name, codes = second_factors.add_passkey(
        responses.write(request), user, form.cleaned_data.get("name", ""), checked.cleaned_data["credential"]
    )
    return _set_up(request, f"Passkey {name} added.", codes)


@require_POST
@of_own_account
def rename(request: http.Request, factor: int) -> HttpResponse:
    """Rename a passkey."""
    form = Name(request.POST)
    responses.declare(request, _home(), refusal="Not renamed")
    name = form.checked()["name"]
    second_factors.rename_passkey(responses.write(request), request.user, factor, name)
    return responses.respond(request, notices.Notice(text=f"Passkey renamed to {name.strip()}."))


@require_POST
@of_own_account
def remove(request: http.Request, factor: int) -> HttpResponse:
    """Remove an app or a passkey, after a confirmation."""
    form = kit.Change(request.POST)
    responses.declare(request, _home(), refusal="Not removed")
    if not form.checked()["confirm"]:
        name, is_last = second_factors.check_removal(request.user, factor)
        reasons = [f"You no longer log in with {name}."]
        if is_last:
            reasons.append("It is your last one: your password alone logs in then.")
        return responses.ask(request, f"Remove {name}?", "Remove", reasons)
    name = second_factors.remove(responses.write(request), request.user, factor)
    return _changed(request, f"{name} removed.")


@require_POST
@of_own_account
def renew_codes(request: http.Request) -> HttpResponse:
    """Replace the recovery codes, and show the new ones once."""
    responses.declare(request, _home())
    codes = second_factors.renew_codes(responses.write(request), request.user)
    return _set_up(request, "The old recovery codes no longer work.", codes)


def _check_local(request: http.Request) -> None:
    if not second_factor.may_use_password(request.user):
        raise PermissionDenied(
            f"You log in with {conf.SIGN_IN_NAME}, which asks for your second factor itself."
        )


def _own(request: http.Request) -> second_factors.Factors:
    return second_factors.of_user(cast(auth_models.User, request.user).pk)


def _home() -> str:
    return f"{reverse('web:account')}#second-factor"


def _set_up(request: http.Request, text: str, codes: list[str]) -> HttpResponse:
    if not codes:
        return _changed(request, text)
    _end_other_logins(request)
    return responses.show(request, _CodesPage(text, codes), "account/recovery_codes.html")


def _changed(request: http.Request, text: str) -> HttpResponse:
    is_ended = _end_other_logins(request)
    detail = "You were logged out on your other browsers." if is_ended else ""
    return responses.respond(request, notices.Notice(text=text, detail=detail))


def _end_other_logins(request: http.Request) -> bool:
    return bool(logins.end_others(responses.write(request), request.user, request.session.session_key))


def _show_confirmation(
    request: http.Request, form: Confirmation, page: str, status: int = 200
) -> HttpResponse:
    view = _ConfirmationPage(request, form, page)
    return responses.show(request, view, "account/confirm.html", status=status)


def _drawn(address: str) -> SafeString:
    """Return a QR code as SVG."""
    # Imported here: it takes long, and no other page draws one.
    import qrcode
    from qrcode.image import svg

    drawing = qrcode.make(address, image_factory=svg.SvgPathFillImage, border=2)
    text: str = drawing.to_string(encoding="unicode")
    return mark_safe(text)  # noqa: S308 (it consists of squares)


class _ConfirmationPage(pieces.Page):
    """The form that asks who is logged in."""

    def __init__(self, request: http.Request, form: Confirmation, page: str) -> None:
        self.form = form
        self.next = page
        self.has_password = second_factor.may_use_password(request.user)
        self.factors = _own(request)


class _AppPage(pieces.Page):
    """What an app scans, or a person types into it."""

    def __init__(self, request: http.Request, form: App) -> None:
        secret = form.secret(request.user)
        library = second_factor.Adapter()
        self.form = form
        self.address = library.build_totp_url(request.user, secret)
        self.drawing = _drawn(self.address)
        self.secret = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))


class _PasskeyPage(pieces.Page):
    """The form of a new passkey, with what its script asks the device."""

    def __init__(self, user: Any, form: NewPasskey) -> None:
        self.form = form
        self.asked = json.dumps(second_factor.new_passkey(user))


class _CodesPage(pieces.Page):
    """The recovery codes, once."""

    def __init__(self, text: str, codes: list[str]) -> None:
        self.text = text
        self.codes = [f"{code[:4]} {code[4:]}" for code in codes]
