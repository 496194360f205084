"""The API tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from toolbelt.control.people import tokens
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.kit import paging, pieces, words

_SCOPES = {"read": "Read", "write": "Read and write"}
_ENDS = {
    "7": "In 7 days",
    "30": "In 30 days",
    "90": "In 90 days",
    "365": "In a year",
    "": "Never",
}
_USUAL_DAYS = "90"
# How soon its end is told as a warning.
_SOON_SECONDS = 7 * 24 * 3600
# Where control says what is wrong, and where the form asks for it.
_ASKED_BY = {"expires": "days"}


def page(
    filters: Mapping[str, Any],
    *,
    me: str,
    path: str,
    may_issue: bool,
    wanted: pieces.View | None = None,
    issued: tokens.Issued | None = None,
    **frame: Any,
) -> pieces.View:
    """Fill the page; ``me`` looks at it, ``wanted`` is a form that was not taken, ``issued`` came of one that was."""
    every = tokens.all_tokens()
    now = timezone.now()
    fitting = [token for token in every if _fits(token, filters["q"])]
    valid = paging.part([token for token in fitting if token.is_valid(now)], filters["offset"])
    gone = paging.part([token for token in fitting if not token.is_valid(now)], filters["gone_offset"])
    count = len(every)
    if may_issue and wanted is None:
        owner = {"owner": "agent", "agent": filters["agent"], "days": _USUAL_DAYS}
        wanted = form(owner, me=me)
    return pieces.View(
        tokens=tuple(_line(token, now) for token in valid.items),
        tokens_pages=valid.pages(filters, path),
        gone=tuple(_line(token, now) for token in gone.items),
        gone_total=gone.total,
        gone_pages=gone.pages(filters, path, name="gone_offset"),
        gone_open=bool(filters["gone_offset"] or (filters["q"] and not valid.total)),
        wanted=wanted if may_issue else None,
        issued=_issued(issued) if issued is not None else None,
        query=filters["q"],
        in_all=count,
        matches=f"{words.number(valid.total)} valid of {words.number(count)}",
        **frame,
    )


def form(typed: Mapping[str, Any], *, me: str, problems: Mapping[str, str] | None = None) -> pieces.View:
    """Fill the form that issues a token, with what somebody typed."""
    keys = [("", "Choose an agent"), *((key, key) for key in queries.agent_keys())]
    return pieces.View(
        owner="me" if typed.get("owner") == "me" else "agent",
        agents=pieces.choices(keys, typed.get("agent", "")),
        scopes=pieces.choices(_SCOPES, typed.get("scope") or "read"),
        ends=pieces.choices(_ENDS, typed.get("days", "")),
        name=typed.get("name", ""),
        me=me,
        problems=problems or {},
    )


def problems(refused: Iterable[errors.Problem]) -> dict[str, str]:
    """Sort what control finds wrong by the fields of the form."""
    return {_ASKED_BY.get(problem.path, problem.path): problem.message for problem in refused}


def whose(token: tokens.Token) -> str:
    """Return whose a token is: ``agent ada``, ``operator olive, read``."""
    return f"agent {token.agent}" if token.agent else f"{token.user}, {token.scope}"


def _fits(token: tokens.Token, query: str) -> bool:
    texts = (token.prefix, token.name, token.agent, token.user)
    return not query or any(query.casefold() in text.casefold() for text in texts)


def line(token: tokens.Token) -> pieces.View:
    """Present one token, as it is now."""
    return _line(token, timezone.now())


def _line(token: tokens.Token, now: datetime) -> pieces.View:
    state, tone = _state(token, now)
    is_valid = token.is_valid(now)
    ends = token.expires if is_valid else token.revoked or token.expires
    return pieces.View(
        prefix=token.prefix,
        name=token.name,
        agent=token.agent,
        operator=token.user,
        scope=_SCOPES.get(token.scope, ""),
        state=state,
        tone=tone,
        over=not is_valid,
        created=words.moment(token.created),
        ends=(words.ahead(ends) if is_valid else words.moment(ends)) if ends else None,
        used=words.moment(token.last_used) if token.last_used else None,
    )


def _state(token: tokens.Token, now: datetime) -> tuple[str, str]:
    if token.revoked is not None:
        return "revoked", "quiet"
    if not token.is_valid(now):
        return "expired", "quiet"
    if token.expires is not None and (token.expires - now).total_seconds() < _SOON_SECONDS:
        return "expires soon", "warning"
    return "valid", "good"


def _issued(issued: tokens.Issued) -> pieces.View:
    token = issued.token
    ends = f"It expires {words.ahead(token.expires).words}." if token.expires else "It does not expire."
    return pieces.View(text=issued.text, prefix=token.prefix, whose=whose(token), ends=ends)
