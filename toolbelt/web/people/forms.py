"""The forms that create a person, and that change their roles."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit


class NewPerson(kit.Fields, kit.Change):
    """A new user, with a first password that they can change in their account."""

    name = forms.CharField(max_length=150, label="User name", strip=True)
    password = forms.CharField(
        label="First password",
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
        help_text="At least 12 characters. They can change it in their account.",
    )
    role = fields.Names(required=False)


class Roles(kit.Change):
    """The roles of a person, and those that the page showed (``was``)."""

    role = fields.Names(required=False)
    was = fields.Names(required=False)


class Activity(kit.Change):
    """Whether a person may log in."""

    active = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])
