"""The ways to connect to an agent, with a token that was just created in place, and whether a request has come."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from django.utils import timezone

from toolbelt.control.agents import mcp_clients
from toolbelt.control.people import tokens
from toolbelt.control.reports import queries
from toolbelt.web.agents import view_model as agents
from toolbelt.web.connect import client_limits, snippets
from toolbelt.web.kit import pieces

# The page asks for this long after the token was created whether it was used.
WAIT = dt.timedelta(minutes=15)


def page(agent: str, *, address: str, chosen: str, issued: tokens.Issued | None) -> pieces.View:
    """Return the page; ``address`` is the agent's in the API, as this browser would reach it."""
    settings = queries.settings(agent)
    origin = address.rpartition("/api/v1/")[0]
    listed = (*settings.surface.tools, *settings.surface.meta_tools)
    groups = (
        ("MCP clients", client_limits.configurations(origin, agent, settings.surface)),
        ("HTTP API", snippets.languages(address, listed[0].name if listed else "a_tool")),
        ("Frameworks", snippets.frameworks(origin, agent)),
    )
    ways = [(label, [_with_token(way, issued) for way in every]) for label, every in groups]
    names = [way.name for _, every in ways for way in every]
    return pieces.View(
        agent=agents.present(settings.summary),
        ways=ways,
        chosen=chosen if chosen in names else names[0],
        issued=issued,
        command=snippets.issue_command(agent),
    )


def label_of(way: str) -> str:
    """Return what the page calls a way to connect; empty if there is none with this name."""
    labels = {client.id: client.label for client in mcp_clients.CLIENTS}
    return {**labels, **snippets.LANGUAGES, **snippets.FRAMEWORKS}.get(way, "")


def first_request(agent: str, prefix: str = "") -> pieces.View | None:
    """Return whether the token with this prefix was used, or else the newest one of the agent that is valid; None if
    there is none.
    """
    now = timezone.now()
    for token in tokens.of_agent(agent):
        if token.prefix == prefix or (not prefix and token.is_valid(now)):
            is_waiting = token.last_used is None
            return pieces.View(
                token=token, is_waiting=is_waiting, is_polled=is_waiting and now - token.created < WAIT
            )
    return None


def _with_token(way: pieces.View, issued: tokens.Issued | None) -> pieces.View:
    """Return a way to connect with the token where it belongs: in its text, or in ``steps`` before it."""
    way.steps = ()
    if issued is None:
        return way
    text = way.text.replace("$TOOLBELT_TOKEN", issued.text).replace("YOUR_TOKEN", issued.text)
    if text == way.text:
        way.steps = tuple(_steps(way, issued.text))
    way.text = text
    return way


def _steps(way: pieces.View, token: str) -> Iterator[pieces.View]:
    if "TOOLBELT_TOKEN" in way.text:
        yield pieces.View(
            words=f"In the shell from which you start {way.label}:"
            if way.is_client
            else "In the shell that runs the program:",
            text=f"export TOOLBELT_TOKEN={token}\n",
            what="the command that sets the token",
        )
    else:
        yield pieces.View(words=f"{way.label} asks for the token:", text=token, what="the token")
