"""Checks of people and tokens: whether anybody can operate the installation, and which tokens are rejected."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import auth
from django.utils import timezone

from toolbelt import conf
from toolbelt.control.doctor import findings
from toolbelt.core import texts
from toolbelt.store import credentials


def examine() -> Iterator[findings.Finding]:
    """Yield the findings about users and tokens."""
    users = auth.get_user_model()._default_manager
    if not users.filter(is_active=True, is_superuser=True).exists():
        yield findings.Finding(
            code="no-administrator",
            message="No active user is a superuser, so no one can manage users.",
            way_out=f"Run `{conf.COMMAND} createsuperuser`.",
        )
    useless = credentials.rejected_though_valid(timezone.now())
    if useless:
        names = texts.listing([token.prefix for token in useless])
        yield findings.Finding(
            code="useless-tokens",
            message=f"{len(useless)} token{' is' if len(useless) == 1 else 's are'} rejected, because the agent is"
            " archived or the user is not active:"
            f" {names}.",
            way_out=f"Revoke each with `{conf.COMMAND} token revoke PREFIX`, or bring its agent or user back.",
        )
