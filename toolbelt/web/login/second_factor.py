"""The second factor of a login: who has given the password and not yet the factor, and which factors are accepted.

A session in between has no user: it names the person who has given the password, and a login needs their factor within
:data:`SECONDS`. Failed codes are counted like failed passwords, for the person from all addresses.
"""

from __future__ import annotations

import json
import struct
import time
from typing import Any

from allauth.mfa import adapter
from allauth.mfa.webauthn import forms as library
from allauth.mfa.webauthn.internal import auth as steps
from axes.handlers import proxy
from django import forms
from django.conf import settings
from django.contrib import auth
from django.contrib.auth import signals
from django.core.exceptions import ValidationError
from django.core.serializers import json as json_encoders
from django.http import HttpResponse
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import urlencode

from toolbelt import conf
from toolbelt.control.people import second_factors
from toolbelt.core import errors
from toolbelt.web.kit import fields, http, notices, responses
from toolbelt.web.login import passwords

# How long a person has for the second factor after the password.
SECONDS = 300
# How long a login, or a confirmation, allows changes of what the person logs in with.
CONFIRMED_SECONDS = 600
WRONG = "The code is incorrect, or was used already. Enter the newest one."
WRONG_PASSKEY = "This passkey is not known here. Use another one, or log in with your password."
# What the library raises for JSON and CBOR that no browser sends.
_HOSTILE = (
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    AssertionError,
    NotImplementedError,
    RecursionError,
    struct.error,
)
_PENDING, _CONFIRMED = "toolbelt.password_given", "toolbelt.confirmed"
_DEMANDED = "toolbelt.second_factor_demanded"
# Where a superuser decides in the admin who may log in, how, and what they may do.
_OF_ADMIN = frozenset(
    {
        "admin:auth_user_password_change",
        "admin:auth_user_add",
        "admin:auth_user_change",
        "admin:auth_group_add",
        "admin:auth_group_change",
    }
)
# What a login may open that must set up a second factor.
_ALLOWED = frozenset(
    {
        "web:account",
        "web:confirm_account",
        "web:add_app",
        "web:add_passkey",
        "web:passkey",
        "web:logout",
        "favicon",
        "healthz",
        "readyz",
    }
)


class Adapter(adapter.DefaultMFAAdapter):  # type: ignore[misc]
    """The library's questions to this installation."""

    def encrypt(self, text: str) -> str:
        """Return a secret as it is stored."""
        return second_factors.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Return a stored secret."""
        return second_factors.unseal(encrypted_text)

    def get_totp_issuer(self) -> str:
        """Return what apps and passkeys call this installation."""
        return "Toolbelt"

    def get_totp_label(self, user: Any) -> str:
        """Return what apps call the account."""
        name: str = user.get_username()
        return name

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """Return what passkeys call this installation."""
        return {**super().get_public_key_credential_rp_entity(), "name": self.get_totp_issuer()}

    def get_public_key_credential_user_entity(self, user: Any) -> dict[str, Any]:
        """Return what passkeys call the account."""
        name = user.get_username()
        return {**super().get_public_key_credential_user_entity(user), "name": name, "display_name": name}


class Code(forms.Form):
    """The code of an app, or a recovery code, of a person who has given the password."""

    code = forms.CharField(max_length=40, required=False)

    def __init__(self, request: http.Request, data: Any = None, **options: Any) -> None:
        self._request, self.user = request, pending(request)
        super().__init__(data, **options)

    def clean_code(self) -> str:
        """Check the code, and count it if it is wrong."""
        code: str = self.cleaned_data["code"]
        if why := problem(self._request, self.user, code):
            raise ValidationError(why, code="incorrect")
        return code

    def get_user(self) -> Any:
        """Return who logs in."""
        return self.user


class NewPasskey(library.AddWebAuthnForm):  # type: ignore[misc]
    """The library's check of a new passkey."""

    credential = fields.Document()


class Passkey(library.LoginWebAuthnForm):  # type: ignore[misc]
    """The library's check of a passkey that logs in, or confirms who someone is."""

    credential = fields.Document()

    def __init__(self, request: http.Request, data: Any = None, **options: Any) -> None:
        super().__init__(data=data)

    def clean_credential(self) -> Any:
        """Return the stored passkey. Any other answer is wrong in the same words."""
        try:
            stored = super().clean_credential()
        except (ValidationError, *_HOSTILE) as error:
            raise ValidationError(WRONG_PASSKEY, code="incorrect") from error
        if not may_use_password(stored.user):
            raise ValidationError(WRONG_PASSKEY, code="incorrect")
        return stored

    def get_user(self) -> Any:
        """Return whose passkey it is."""
        stored = self.cleaned_data["credential"]
        stored.record_usage()
        user = stored.user
        user.backend = _local_backend()
        return user


def is_registration(form: NewPasskey) -> bool:
    """Return whether a device has made a passkey as it was asked to."""
    try:
        return bool(form.is_valid())
    except _HOSTILE:
        return False


def wait(request: http.Request, user: Any) -> None:
    """Remember that a person has given the password, in a session that has not been anyone's."""
    request.session.cycle_key()
    request.session[_PENDING] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "backend": user.backend,
        "until": time.time() + SECONDS,
    }


def pending(request: http.Request) -> Any:
    """Return the user who has given the password in this session, and may still log in with it; None if no one has."""
    stored = request.session.get(_PENDING)
    if (
        not stored
        or stored["until"] < time.time()
        or stored["backend"] not in settings.AUTHENTICATION_BACKENDS
    ):
        return None
    # Asks the backend, which knows whether the user is active and may log in.
    user = auth.load_backend(stored["backend"]).get_user(stored["user"])
    if user is None or not constant_time_compare(stored["hash"], user.get_session_auth_hash()):
        return None
    user.backend = stored["backend"]
    return user


def problem(request: http.Request, user: Any, code: str, *, confirms: bool = False) -> str:
    """Return why a code is not accepted, and count it if it is wrong; empty if it is right.

    Those of a confirmation are counted apart. After too many, Axes replaces the response, and the audit log has it.
    """
    name = user.get_username()
    counted = {"username": passwords.of_second_factor(passwords.of_confirmation(name) if confirms else name)}
    try:
        with second_factors.one_at_a_time(user):
            if proxy.AxesProxyHandler.is_locked(request, counted):
                request.axes_locked_out = True  # type: ignore[attr-defined]
                return WRONG
            if second_factors.accept(user, code):
                proxy.AxesProxyHandler.reset_attempts(**counted)
                return ""
            signals.user_login_failed.send(sender=__name__, credentials=counted, request=request)
            # Once for each lockout: the next code is not counted, and a burst is one by one here.
            is_locked_now = passwords.is_locked_everywhere(request, counted["username"])
    except errors.Refused as error:
        return str(error)
    if is_locked_now:
        second_factors.record_lock(user, confirms)
    return WRONG


def is_own_password(request: http.Request, password: str) -> bool:
    """Return whether this is the password of who is logged in, and count it with their confirmations if it is wrong.

    After too many, Axes replaces the response.
    """
    counted = {"username": passwords.of_confirmation(request.user.get_username())}
    if proxy.AxesProxyHandler.is_locked(request, counted):
        request.axes_locked_out = True  # type: ignore[attr-defined]
        return False
    if request.user.check_password(password):
        proxy.AxesProxyHandler.reset_attempts(**counted)
        return True
    signals.user_login_failed.send(sender=__name__, credentials=counted, request=request)
    return False


def may_use_password(user: Any) -> bool:
    """Return whether a user may log in with a password that is stored here, so also with a passkey."""
    backend: Any = auth.load_backend(_local_backend())
    return bool(backend.user_can_authenticate(user) and user.has_usable_password())


def passkey_to_log_in() -> dict[str, Any]:
    """Return what a browser asks any of its passkeys for this site. The session remembers the challenge."""
    return _as_json(steps.begin_authentication())


def new_passkey(user: Any) -> dict[str, Any]:
    """Return what a browser asks a device for a passkey that logs in alone. The session remembers the challenge."""
    return _as_json(steps.begin_registration(user, passwordless=True))


def demand(request: http.Request) -> None:
    """Remember that this login must set up a second factor first."""
    request.session[_DEMANDED] = True


class Middleware(MiddlewareMixin):
    """Lead a login that must set up a second factor to where it does, from every other page.

    Lead a superuser who changes a user or a group in the admin to where they confirm who they are.
    """

    async_capable = False

    def process_view(self, request: http.Request, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Redirect, unless the person has set one up meanwhile or need no longer."""
        match = request.resolver_match
        if not request.user.is_authenticated:
            return None
        if match is not None and match.view_name in _OF_ADMIN and not is_confirmed(request):
            return ask_to_confirm(request, request.path)
        if conf.REQUIRE_SECOND_FACTOR == "off":
            return None
        if not request.session.get(_DEMANDED) or (match is not None and match.view_name in _ALLOWED):
            return None
        if second_factors.are_asked(request.user.pk) or not second_factors.is_required(request.user):
            del request.session[_DEMANDED]
            return None
        text = "Set up a second factor first: this installation requires one of you."
        responses.keep_notice(request, notices.Notice(text=text, tone="refused"))
        return responses.see_other(request, f"{reverse('web:account')}#second-factor")


def confirm(request: http.Request) -> None:
    """Remember that the person has just shown who they are: nothing is pending any more."""
    request.session.pop(_PENDING, None)
    request.session[_CONFIRMED] = time.time()


def is_confirmed(request: http.Request) -> bool:
    """Return whether the person has shown who they are lately."""
    return bool(time.time() - request.session.get(_CONFIRMED, 0) < CONFIRMED_SECONDS)


def ask_to_confirm(request: http.Request, home: str) -> HttpResponse:
    """Lead a person who has not to where they show who they are, and from there to the page that they asked for, or
    ``home``.
    """
    return responses.see_other(
        request, confirmation_url(request.get_full_path() if request.method == "GET" else home)
    )


def confirmation_url(page: str) -> str:
    """Return where a person shows who they are, to open a page."""
    return f"{reverse('web:confirm_account')}?{urlencode({'next': page})}"


def _local_backend() -> str:
    """Return the backend of passwords that are stored here, which follows Axes's."""
    return settings.AUTHENTICATION_BACKENDS[1]


def _as_json(options: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(options, cls=json_encoders.DjangoJSONEncoder))
    return plain
