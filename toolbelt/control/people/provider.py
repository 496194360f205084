"""The provider with which people log in, if there is one: whose identities it has, and whose roles it gives.

If the setting ``SIGN_IN_ROLES`` maps groups to roles, it gives people who log in with it all their roles, and none is
given or taken here.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps

from toolbelt import conf


def identities() -> Any:
    """Return the identities at the provider that have logged in, as a query. There must be a provider."""
    return apps.get_model("socialaccount", "SocialAccount")._default_manager.all()


def gives_roles() -> bool:
    """Return whether the roles of people who log in with the provider are those of their groups."""
    return bool(conf.SIGN_IN_ISSUER and conf.SIGN_IN_ROLES)


def given_to() -> frozenset[int]:
    """Return the users whose roles the provider gives, by primary key."""
    return frozenset(identities().values_list("user_id", flat=True)) if gives_roles() else frozenset()
