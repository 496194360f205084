"""People and roles: the list, creating a person, giving them roles, and deactivating them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control.people import password_links, roles, second_factors, users
from toolbelt.core import errors
from toolbelt.web.kit import fields, http, notices, pieces, responses, words
from toolbelt.web.kit import forms as kit
from toolbelt.web.login import password_links as link_pages
from toolbelt.web.login import second_factor

_ADD = ("auth.add_user", "auth.change_user")
_MEANINGS = {
    "viewer": "View everything except tokens",
    "approver": "Decide about calls that wait for approval, and change nothing",
    "operator": "Also flip switches, edit agents and toolkits, approve tools",
    "administrator": "Everything, including tokens and people",
}


class NewPerson(kit.Fields, kit.Change):
    """A new user, with a first password that they can change in their account."""

    name = forms.CharField(max_length=150, label="User name", strip=True)
    email = forms.EmailField(required=False, label="E-mail address")
    password = forms.CharField(
        label="First password",
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
        required=False,
        help_text="At least 12 characters. Leave it empty to get a link with which they choose it.",
    )
    role = fields.Names(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if conf.SIGN_IN_ISSUER:
            self.fields["email"].help_text = f"With this address, they log in with {conf.SIGN_IN_NAME}."
            self.fields[
                "password"
            ].help_text = "At least 12 characters. Leave it empty if they have none here."
        elif conf.EMAIL_FROM:
            self.fields["email"].help_text = "The link is sent there, too."


class Roles(kit.Change):
    """The roles of a person, and those that the page showed (``was``)."""

    role = fields.Names(required=False)
    was = fields.Names(required=False)


class Activity(kit.Change):
    """Whether a person may log in."""

    active = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])


@require_safe
@permission_required("auth.view_user", raise_exception=True)
def listing(request: http.Request) -> HttpResponse:
    """Show the people."""
    return _render(request, NewPerson())


@sensitive_post_parameters("password")
@require_POST
@permission_required(_ADD, raise_exception=True)
def create(request: http.Request) -> HttpResponse:
    """Create a person with roles."""
    form = NewPerson(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, default_field="name")
        return _render(request, form, status)

    responses.declare(request, reverse("web:people"), form=show_again)
    if (question := _ask_who_asks(request)) is not None:
        return question
    data = form.checked()
    _check_assignable(request, data["role"])
    write = responses.write(request, data)
    if data["password"] or (conf.SIGN_IN_ISSUER and data["email"]):
        users.create(write, data["name"], data["password"], data["role"], data["email"])
        return responses.respond(request, notices.Notice(text=f"User {data['name']} created."))
    return _show_link(request, password_links.invite(write, data["name"], data["role"], data["email"]))


@require_POST
@permission_required("auth.change_user", raise_exception=True)
def set_roles(request: http.Request, person: str) -> HttpResponse:
    """Set the roles of a user to the ticked ones."""
    form = Roles(request.POST)
    responses.declare(request, reverse("web:people"))
    _check_manageable(request, person)
    if (question := _ask_who_asks(request)) is not None:
        return question
    data = form.checked()
    _check_assignable(request, set(data["role"]) ^ set(data["was"]))
    changed = roles.put(responses.write(request, data), person, data["role"], was=data["was"])
    names = ", ".join(roles.of_user(person)) or "no role"
    text = f"{person}: {names}." if changed else f"No changes: {person} has these roles already."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
@permission_required("auth.change_user", raise_exception=True)
def set_active(request: http.Request, person: str) -> HttpResponse:
    """Deactivate a person, after a confirmation, or activate them again."""
    form = Activity(request.POST)
    responses.declare(request, reverse("web:people"), refusal="Not deactivated")
    _check_weaker(request, person)
    data = form.checked()
    active = data["active"] == "yes"
    # Whoever is to be stopped is deactivated at once.
    if active and (question := _ask_who_asks(request)) is not None:
        return question
    if not active and not data["confirm"]:
        reasons = (
            "They are logged out, and cannot log in.",
            "Their tokens are rejected. What they changed stays in the audit log.",
        )
        return responses.ask(request, f"Deactivate {person}?", "Deactivate user", reasons, [("active", "no")])
    users.set_active(responses.write(request, data), person, active)
    text = f"{person} is active again." if active else f"{person} is deactivated."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
@permission_required("auth.change_user", raise_exception=True)
def reset_second_factor(request: http.Request, person: str) -> HttpResponse:
    """Remove the second factors of a person who has lost them, after a confirmation."""
    form = kit.Change(request.POST)
    responses.declare(request, reverse("web:people"), refusal="Not reset")
    _check_others_login(request, person)
    if (question := _ask_who_asks(request)) is not None:
        return question
    data = form.checked()
    if not data["confirm"]:
        reasons = (
            "Their apps, passkeys and recovery codes no longer work. Their password alone logs in until they set up"
            " others.",
            "Make sure that it is really this person who asks.",
        )
        return responses.ask(request, f"Reset the second factor of {person}?", "Reset second factor", reasons)
    is_changed = second_factors.reset(responses.write(request, data), person)
    text = f"The second factor of {person} is reset." if is_changed else f"No changes: {person} has none."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
@permission_required("auth.change_user", raise_exception=True)
def make_link(request: http.Request, person: str) -> HttpResponse:
    """Make a link with which a person chooses a new password, after a confirmation, and show it once."""
    form = kit.Change(request.POST)
    responses.declare(request, reverse("web:people"), refusal="No link made")
    _check_others_login(request, person)
    if (question := _ask_who_asks(request)) is not None:
        return question
    data = form.checked()
    if not data["confirm"]:
        reasons = (
            "With the link, they choose a new password, once. It replaces an earlier link.",
            f"Give it to {person} alone: it is as good as their password.",
        )
        return responses.ask(request, f"Make a password link for {person}?", "Make link", reasons)
    return _show_link(request, password_links.make(responses.write(request, data), person))


@require_POST
@permission_required("auth.change_user", raise_exception=True)
def withdraw_link(request: http.Request, person: str) -> HttpResponse:
    """Make a person's link invalid."""
    form = kit.Change(request.POST)
    responses.declare(request, reverse("web:people"), refusal="Not withdrawn")
    _check_manageable(request, person)
    is_gone = password_links.withdraw(responses.write(request, form.checked()), person)
    text = f"The link of {person} is no longer valid." if is_gone else f"No changes: {person} has no link."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
@permission_required("auth.change_user", raise_exception=True)
def end_logins(request: http.Request, person: str) -> HttpResponse:
    """Log a person out on all browsers, after a confirmation."""
    form = kit.Change(request.POST)
    responses.declare(request, reverse("web:people"), refusal="Not logged out")
    _check_weaker(request, person)
    data = form.checked()
    if not data["confirm"]:
        reasons = ("They can log in again. Their tokens and their clients that signed in stay.",)
        return responses.ask(request, f"Log {person} out on all browsers?", "Log out", reasons)
    count = users.log_out(responses.write(request, data), person)
    text = f"{person} is logged out on {words.counted(count, 'browser')}."
    return responses.respond(request, notices.Notice(text=text))


def _check_manageable(request: http.Request, person: str) -> None:
    if users.find(person).is_superuser and not request.user.is_superuser:
        raise PermissionDenied


def _check_weaker(request: http.Request, person: str) -> None:
    """Raise PermissionDenied for a person who may do more than the user, who could act as them."""
    if not roles.may_act_for(request.user, users.row_of(person)):
        raise PermissionDenied


def _check_others_login(request: http.Request, person: str) -> None:
    """Raise as :func:`_check_weaker` does, and Refused for oneself: Account asks for more than a session."""
    _check_weaker(request, person)
    if person == request.user.get_username():
        raise errors.Refused("Change your own on Account.")


def _ask_who_asks(request: http.Request) -> HttpResponse | None:
    """Return the question who the user is, before they let a person in, or change how one logs in or what they may do;
    None if it was answered lately.
    """
    if second_factor.is_confirmed(request):
        return None
    return second_factor.ask_to_confirm(request, reverse("web:people"))


def _check_assignable(request: http.Request, names: Iterable[str]) -> None:
    """Raise PermissionDenied for a role with more permissions than the user has."""
    if not set(names) <= set(roles.assignable(request.user)):
        raise PermissionDenied


def _show_link(request: http.Request, link: password_links.Link) -> HttpResponse:
    """Show a link once, beside the people. It is in the response alone, and not in the session."""
    page = _Page(request, NewPerson())
    page.link, page.address = link, link_pages.address(request, link)
    page.sent = link_pages.send(request, link)
    return responses.show(request, page, "people/people.html")


def _render(request: http.Request, form: NewPerson, status: int = 200) -> HttpResponse:
    return responses.show(request, _Page(request, form, status), "people/people.html", status=status)


class _Page(pieces.Page):
    """The people, and the form that creates one, or where the reader confirms who they are first (``confirm_url``), or
    the link that was just made, with its address and where it was sent.
    """

    link: password_links.Link | None = None
    address = ""
    sent = ""

    def __init__(self, request: http.Request, form: NewPerson, status: int = 200) -> None:
        self.people = users.listed()
        links, protected = password_links.waiting(), second_factors.names_with_one()
        weaker = roles.names_within(request.user)
        self.lines = [
            _Line(person, links.get(person.name), person.name in protected, person.name in weaker)
            for person in self.people
        ]
        self.form = form
        self.roles = [(role, _MEANINGS[role]) for role in roles.ROLES]
        self.chosen = request.POST.getlist("role") if form.is_bound else ["viewer"]
        self.assignable = roles.assignable(request.user)
        self.confirm_url = ""
        if not second_factor.is_confirmed(request):
            self.confirm_url = second_factor.confirmation_url(reverse("web:people"))


class _Line(pieces.View):
    """A person, with the link that they can use, whether their login asks for a second factor, and whether the reader
    may act for them.
    """

    def __init__(
        self,
        person: users.Person,
        link: password_links.Link | None,
        has_second_factor: bool,
        is_weaker: bool,
    ) -> None:
        self.person = person
        self.link = link
        self.has_second_factor = has_second_factor
        self.is_weaker = is_weaker
