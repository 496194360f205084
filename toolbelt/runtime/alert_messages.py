"""Sending of alerts: to a webhook, signed; in Slack's form; and by Apprise, where the extra ``alerts`` is installed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from urllib.parse import quote

from asgiref.sync import async_to_sync

from toolbelt.core import alerts, variables
from toolbelt.runtime import secrets
from toolbelt.store import clock

SECONDS = 15.0
_MISSING = "the extra `alerts` is not installed: pip install 'toolbelt-switchboard[alerts]'"


def send(destination: alerts.Destination, plan: alerts.Plan, sent: Sequence[alerts.Alert]) -> str:
    """Send a message with these alerts; return why it was not received, without secrets; empty if it was."""
    address, missing = variables.fill(destination.address, os.environ)
    secret, missing_secret = variables.fill(destination.secret, os.environ)
    if missing or missing_secret:
        return "; ".join([*missing, *missing_secret])
    if not address or (destination.way == "webhook" and not secret):
        return f"{destination.secret if address else destination.address} is empty: set the variable"
    # Slack's addresses, and those of Apprise, are secrets.
    for value in (address, secret):
        if value:
            secrets.mask_always(value)
    try:
        if destination.way == "people":
            address += f"{'&' if '?' in address else '?'}to={quote(destination.to, safe='')}"
        if destination.way in ("apprise", "people"):
            return _by_apprise(address, plan, sent)
        if problem := alerts.address_problem(address):
            return problem
        return async_to_sync(_post)(address, secret, alerts.body(destination, plan, sent))
    except Exception as error:
        said = secrets.mask(str(error)).replace(address, secrets.MASK)
        return _printable(f"{type(error).__name__}: {said}".removesuffix(": "))


async def _post(address: str, secret: str, body: bytes) -> str:
    # Commands send nothing, and do without the HTTP client.
    from toolbelt.runtime import http

    headers = {"content-type": "application/json", "user-agent": "toolbelt"}
    if secret:
        headers["toolbelt-signature"] = alerts.signature(secret, body, clock.now())
    try:
        # As a whole: the timeouts of the HTTP client are for each part of an answer.
        async with (
            asyncio.timeout(SECONDS),
            http.client() as client,
            client.stream("POST", address, content=body, headers=headers) as answer,
        ):
            # Neither a redirect nor the answer's text says that it was received.
            return "" if answer.is_success else f"it answered {answer.status_code}"
    except TimeoutError:
        return f"it did not answer within {SECONDS:g} seconds"


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)[:500]


def _by_apprise(address: str, plan: alerts.Plan, sent: Sequence[alerts.Alert]) -> str:
    try:
        import apprise
    except ImportError:
        return _MISSING
    messenger = apprise.Apprise()
    if not messenger.add(address):
        return "Apprise does not understand its address"
    # As text: mail would be HTML, in which a name could be a link.
    is_received = messenger.notify(
        title=alerts.title(sent), body=alerts.text(plan, sent), body_format=apprise.NotifyFormat.TEXT
    )
    return "" if is_received else "Apprise could not deliver it: its log says why"
