"""Choosing a password with a link, by a person who is not logged in; and the mail that brings the link.

The secret is in the query of the address, which no log contains.
"""

from __future__ import annotations

import structlog
from django import forms
from django.contrib.auth import decorators, password_validation
from django.core import mail
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from toolbelt import conf
from toolbelt.control.people import password_links
from toolbelt.core import errors
from toolbelt.web.kit import forms as kit
from toolbelt.web.kit import http, pieces, words

_log = structlog.get_logger(__name__)


class Password(kit.Fields):
    """A password, twice."""

    link = forms.CharField(required=False, widget=forms.HiddenInput)
    password = forms.CharField(
        label="New password",
        strip=False,
        widget=forms.PasswordInput(
            {
                "autocomplete": "new-password",
                "required": True,
                "autofocus": True,
                "aria-describedby": "password-rules",
            }
        ),
    )
    again = forms.CharField(
        label="Repeat the new password",
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "new-password", "required": True}),
    )

    def clean_again(self) -> str:
        """Compare both."""
        again: str = self.cleaned_data["again"]
        if again != self.cleaned_data.get("password", again):
            raise forms.ValidationError("The passwords do not match.")
        return again


@decorators.login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def choose(request: http.Request) -> HttpResponse:
    """Let the person of a link choose a password."""
    text = (request.POST if request.method == "POST" else request.GET).get("link", "")
    link = password_links.find(text)
    if link is None:
        return render(request, "password_link_gone.html", {"why": password_links.GONE}, status=404)
    if request.method != "POST":
        return _show(request, link, Password(initial={"link": text}))
    form = Password(request.POST)
    if not form.is_valid():
        return _show(request, link, form, 422)
    try:
        name = password_links.use(text, form.cleaned_data["password"])
    except errors.Refused:
        return render(request, "password_link_gone.html", {"why": password_links.GONE}, status=404)
    except errors.Invalid as error:
        form.refuse(error, default_field="password")
        return _show(request, link, form, 422)
    return render(request, "login.html", {"done": f"Your password is set. Log in as {name}."})


def address(request: http.Request, link: password_links.Link) -> str:
    """Return the address of a link that was just made."""
    path = f"{reverse('web:password_link')}?{urlencode({'link': link.text})}"
    return request.build_absolute_uri(path)


def send(request: http.Request, link: password_links.Link) -> str:
    """Send a link to its person; return whether that happened, in words; empty if no mail is sent."""
    if not conf.EMAIL_FROM or not link.email:
        return ""
    what = (
        "You are invited to Toolbelt."
        if link.is_invitation
        else "You can choose a new password for Toolbelt."
    )
    text = (
        f"{what}\n\nYour user name is {link.person}. Choose your password here:\n\n{address(request, link)}\n\nThe link"
        f" can be used once, until {words.in_full(link.expires)}. If you did not expect it, ignore this message.\n"
    )
    try:
        mail.send_mail("Your password for Toolbelt", text, conf.EMAIL_FROM, [link.email])
    except Exception as error:
        # Whatever the mail server or its library says: the link is on the page, too.
        _log.warning("mail_failed", error=f"{type(error).__name__}"[:100])
        return (
            f"The mail to {link.email} could not be sent ({type(error).__name__}): pass the link on yourself."
        )
    return f"It was also sent to {link.email}."


def _show(
    request: http.Request, link: password_links.Link, form: Password, status: int = 200
) -> HttpResponse:
    response = render(request, "password_link.html", {"page": _Page(link, form)}, status=status)
    # What the page loads is asked for without the link, which a log of referrers would have. Its form needs the origin.
    response.headers["Referrer-Policy"] = "strict-origin"
    return response


class _Page(pieces.Page):
    """The form, and what a password must be like."""

    def __init__(self, link: password_links.Link, form: Password) -> None:
        self.link = link
        self.form = form
        self.password_rules = tuple(password_validation.password_validators_help_texts())
