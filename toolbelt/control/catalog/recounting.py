"""Recounting of the tokens of all tools."""

from __future__ import annotations

from toolbelt.control import writing
from toolbelt.store import token_counts


def recount_tokens() -> int:
    """Recount every tool's tokens; return how many counts were wrong.

    Tools that are written through Toolbelt or a fixture are counted then; those written by raw SQL or in bulk are not.
    The count is derived and not configured, so there is no audit entry.
    """
    with writing.begin():
        return token_counts.recount()
