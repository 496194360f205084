"""The API tokens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from toolbelt.control.people import tokens
from toolbelt.web.kit import paging, pieces, words
from toolbelt.web.tokens import forms

# How long before its end a token is marked.
_SOON_SECONDS = 7 * 24 * 3600


def page(filters: Mapping[str, Any], *, path: str) -> pieces.View:
    """Return the list."""
    every = tokens.all_tokens()
    now = timezone.now()
    matching = [
        token
        for token in every
        if words.contains(filters["q"], token.prefix, token.name, token.agent, token.user)
    ]
    valid = paging.part([token for token in matching if token.is_valid(now)], filters["offset"])
    gone = paging.part([token for token in matching if not token.is_valid(now)], filters["gone_offset"])
    return pieces.View(
        tokens=tuple(line(token) for token in valid.items),
        tokens_pages=valid.pages(filters, path),
        gone=tuple(line(token) for token in gone.items),
        gone_total=gone.total,
        gone_pages=gone.pages(filters, path, name="gone_offset"),
        gone_open=bool(filters["gone_offset"] or (filters["q"] and not valid.total)),
        query=filters["q"],
        in_all=len(every),
        matches=f"{words.number(valid.total)} valid of {words.number(len(every))}",
    )


def owner_words(token: tokens.Token) -> str:
    """Return whose a token is: ``agent ada``, ``olive, read``."""
    return f"agent {token.agent}" if token.agent else f"{token.user}, {token.scope}"


def line(token: tokens.Token) -> pieces.View:
    """Return a token with its state."""
    state, tone = _state(token, timezone.now())
    return pieces.View(
        token=token,
        scope=forms.SCOPES.get(token.scope, ""),
        state=state,
        tone=tone,
        over=state in ("revoked", "expired"),
    )


def _state(token: tokens.Token, now: datetime) -> tuple[str, str]:
    if token.revoked is not None:
        return "revoked", "quiet"
    if not token.is_valid(now):
        return "expired", "quiet"
    if token.expires is not None and (token.expires - now).total_seconds() < _SOON_SECONDS:
        return "expires soon", "warning"
    return "valid", "good"
