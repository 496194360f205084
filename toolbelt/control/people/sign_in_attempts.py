"""How far each MCP client came on the way to its tools: recorded as observed, for the page that shows it.

A client that stops says nothing, so an operator sees only that no tools appear. Here is the last step that succeeded,
and the request that failed after it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils import timezone

from toolbelt import models
from toolbelt.models import client_connections

Step = client_connections.Step
STEPS = client_connections.STEPS

# What a client is called that states no name.
NAMELESS = "A client without a name"
# How long a client may take from one step to the next to count as the same attempt.
SAME = dt.timedelta(minutes=15)
# The most attempts that are kept of clients that have not registered: anyone can begin one.
MAX_UNREGISTERED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How far a client came: ``step`` is the last that succeeded; ``error`` is empty unless a request failed since."""

    agent: str
    client: str
    address: str
    step: Step
    request: str
    error: str
    detail: str
    at: dt.datetime


def discovered(agent: str, address: str, client: str) -> None:
    """Record that a client read the metadata of an agent. Nothing is recorded for an agent that does not exist."""
    row = models.Agent.objects.filter(key=agent, archived=False).first()
    if row is None:
        return
    recent = _recent().filter(agent=row, address=address, application=None)
    if recent.update(at=timezone.now(), client=client[:255]):
        return
    unregistered = models.SignInAttempt.objects.filter(application=None)
    if unregistered.count() >= MAX_UNREGISTERED:
        unregistered.filter(pk__in=unregistered.order_by("at").values("pk")[:1]).delete()
    models.SignInAttempt.objects.create(agent=row, address=address, client=client[:255], step="discovery")


def registered(application: Any, address: str) -> None:
    """Record that a client has registered, as a step of the last discovery from the same address."""
    name = application.name or NAMELESS
    found = _recent().filter(address=address, application=None).order_by("-at").first()
    if found is None:
        found = models.SignInAttempt(address=address)
    found.application, found.client, found.step = application, name, "registration"
    found.at = timezone.now()
    found.save()


def reached(application: int, agent: str, step: Step, address: str = "") -> None:
    """Record that a registered client (by primary key) came to this step for an agent."""
    row = _of(application, agent, address)
    row.step, row.request, row.error, row.detail = step, "", "", ""
    row.at = timezone.now()
    row.save()


def failed(application: int, agent: str, request: str, error: str, detail: str, address: str = "") -> None:
    """Record that a request of a registered client failed. ``agent`` is empty if it named none."""
    row = _of(application, agent, address)
    row.request, row.error, row.detail = request[:100], error[:64], detail[:300]
    row.at = timezone.now()
    row.save()


def unfinished(agent: str = "") -> list[Attempt]:
    """Return the attempts for one agent, or all of them, of clients that have not sent a request with their token, or
    that failed after it; the newest first.
    """
    used = models.ClientConnection.objects.filter(
        application=OuterRef("application"), agent=OuterRef("agent"), last_used__isnull=False
    )
    rows = models.SignInAttempt.objects.select_related("agent").exclude(Exists(used), step="token", error="")
    if agent:
        rows = rows.filter(agent__key=agent)
    return [
        Attempt(
            agent=row.agent.key if row.agent is not None else "",
            client=row.client,
            address=row.address,
            step=next(step for step in STEPS if step == row.step),
            request=row.request,
            error=row.error,
            detail=row.detail,
            at=row.at,
        )
        for row in rows[:MAX_UNREGISTERED]
    ]


def _recent() -> Any:
    return models.SignInAttempt.objects.filter(at__gte=timezone.now() - SAME)


def _of(application: int, agent: str, address: str) -> models.SignInAttempt:
    """Return the attempt of a client for an agent: the one that had not named its agent yet, or a new one."""
    rows = models.SignInAttempt.objects.filter(application=application)
    if not agent:
        found = rows.order_by("-at").first()
    else:
        found = rows.filter(agent__key=agent).first() or rows.filter(agent=None).first()
    if found is None:
        found = models.SignInAttempt(application_id=application, address=address, step="registration")
        found.client = str(found.application) if found.application is not None else ""
    if agent and found.agent is None:
        found.agent = models.Agent.objects.filter(key=agent).first()
    return found
