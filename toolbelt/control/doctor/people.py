"""Checks of people and tokens: whether anybody can operate the installation, and which tokens are rejected."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils import timezone

from toolbelt import conf
from toolbelt.control.doctor import findings
from toolbelt.control.people import roles
from toolbelt.core import texts
from toolbelt.store import credentials


def examine() -> Iterator[findings.Finding]:
    """Yield the findings about users and tokens."""
    if not roles.has_administrator():
        yield findings.Finding(
            code="no-administrator",
            message="No active user is an administrator, so no one can manage users.",
            way_out=f"Run `{conf.COMMAND} role give USER administrator`, or `{conf.COMMAND} user create NAME --role"
            " administrator`.",
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
