"""Alerts and their deliveries. Several processes notice and deliver: each row is made and taken by one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from django.db import models as orm

from toolbelt import models
from toolbelt.core import alerts
from toolbelt.store import clock

# How long they are kept, and how many are deleted by one statement.
KEPT = dt.timedelta(days=30)
_DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery as it is stored."""

    pk: int
    destination: str
    alert: alerts.Alert
    state: str
    attempts: int
    next_attempt: dt.datetime
    delivered: dt.datetime | None
    error: str


def note(
    current: Collection[alerts.Alert],
    destinations: Callable[[], Iterable[alerts.Destination]],
    events: Collection[str] = alerts.EVENTS,
) -> None:
    """Store what is new of the alerts of these events that last now, with its deliveries, and end those that do not
    last. ``destinations`` is called only if something is new.
    """
    now = clock.now()
    by_subject = {(each.event, each.subject): each for each in current}
    rows = models.Alert.objects.filter(ended=None, event__in=events)
    lasting = {(row.event, row.subject): row.pk for row in rows}
    over = [pk for identity, pk in lasting.items() if identity not in by_subject]
    models.Alert.objects.filter(pk__in=over, ended=None).update(ended=now)
    new = [alert for identity, alert in by_subject.items() if identity not in lasting]
    among = [*destinations()] if new else []
    for alert in new:
        row, is_new = models.Alert.objects.get_or_create(
            event=alert.event,
            subject=alert.subject,
            ended=None,
            defaults={"text": alert.text, "path": alert.path, "details": alert.details, "begun": now},
        )
        if is_new:
            add(row, [each for each in among if each.wants(alert)])
    old = models.Alert.objects.filter(begun__lt=now - KEPT).exclude(ended=None)
    oldest = list(old.values_list("pk", flat=True)[:_DELETED_AT_ONCE])
    models.Alert.objects.filter(pk__in=oldest).delete()


def test(alert: alerts.Alert, destination: alerts.Destination) -> int:
    """Store an alert that is sent to one destination immediately; return its delivery."""
    now = clock.now()
    row = models.Alert.objects.create(
        event=alert.event,
        subject=alert.subject,
        text=alert.text,
        path=alert.path,
        details=alert.details,
        begun=now,
        ended=now,
    )
    return models.AlertDelivery.objects.create(alert=row, destination=destination.name, next_attempt=now).pk


def add(row: models.Alert, destinations: Iterable[alerts.Destination]) -> None:
    """Store the deliveries of an alert."""
    now = clock.now()
    models.AlertDelivery.objects.bulk_create(
        models.AlertDelivery(alert=row, destination=each.name, next_attempt=alerts.first_attempt(each, now))
        for each in destinations
    )


def due() -> frozenset[str]:
    """Return the destinations with deliveries that are due."""
    rows = models.AlertDelivery.objects.filter(state="waiting", next_attempt__lte=clock.now()).order_by()
    return frozenset(rows.values_list("destination", flat=True).distinct())


def take(destination: str, *, only: int | None = None) -> list[Delivery]:
    """Take the deliveries to a destination that are due; no other process takes them until their next attempt."""
    now = clock.now()
    due = models.AlertDelivery.objects.filter(destination=destination, state="waiting", next_attempt__lte=now)
    if only is not None:
        due = due.filter(pk=only)
    taken = []
    for row in due.select_related("alert").order_by("pk")[:_DELETED_AT_ONCE]:
        again = alerts.next_attempt(row.attempts + 1, now)
        unchanged = models.AlertDelivery.objects.filter(pk=row.pk, attempts=row.attempts, state="waiting")
        if unchanged.update(attempts=row.attempts + 1, next_attempt=again):
            taken.append(_value(row))
    return taken


def delivered(deliveries: Iterable[Delivery]) -> None:
    """Store that these were received."""
    keys = [each.pk for each in deliveries]
    models.AlertDelivery.objects.filter(pk__in=keys).update(
        state="delivered", delivered=clock.now(), error=""
    )


def failed(deliveries: Iterable[Delivery], error: str) -> None:
    """Store why an attempt failed; after the last one, the delivery has."""
    rows = models.AlertDelivery.objects.filter(pk__in=[each.pk for each in deliveries])
    rows.update(error=error)
    rows.filter(attempts__gte=alerts.MAX_ATTEMPTS).update(state="failed")


def drop(deliveries: Iterable[Delivery]) -> None:
    """Delete deliveries that are no longer to be made."""
    models.AlertDelivery.objects.filter(pk__in=[each.pk for each in deliveries]).delete()


def latest(maximum: int) -> list[Delivery]:
    """Return the latest deliveries."""
    return [_value(row) for row in models.AlertDelivery.objects.select_related("alert")[:maximum]]


def last_errors(destinations: Collection[str]) -> dict[str, str]:
    """Return why the last attempt at a delivery to each of these failed; without those that received it. One query."""
    tried = models.AlertDelivery.objects.filter(destination__in=destinations, attempts__gt=0).order_by()
    last = tried.values("destination").annotate(last=orm.Max("pk")).values("last")
    rows = models.AlertDelivery.objects.filter(pk__in=last).exclude(error="")
    found = dict(rows.values_list("destination", "error"))
    return {name: found[name] for name in destinations if name in found}


def find(pk: int) -> Delivery:
    """Return a delivery that exists."""
    return _value(models.AlertDelivery.objects.select_related("alert").get(pk=pk))


def counts() -> dict[str, dict[str, int]]:
    """Return the number of deliveries by destination and state."""
    found: dict[str, dict[str, int]] = {}
    rows = models.AlertDelivery.objects.order_by().values_list("destination", "state")
    for destination, state, count in rows.annotate(count=orm.Count("pk")):
        found.setdefault(destination, {})[state] = count
    return found


def _value(row: models.AlertDelivery) -> Delivery:
    alert = row.alert
    return Delivery(
        pk=row.pk,
        destination=row.destination,
        alert=alerts.Alert(
            event=alert.event,
            subject=alert.subject,
            text=alert.text,
            path=alert.path,
            details=alert.details,
        ),
        state=row.state,
        attempts=row.attempts,
        next_attempt=row.next_attempt,
        delivered=row.delivered,
        error=row.error,
    )
