"""Alerts of operators: what there is to be notified of, and its delivery to the destinations of the installation.

A server notices and delivers in the background, if the setting TOOLBELT_ALERTS_FILE names a file. Several may do so:
what one has stored or taken, no other does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
from django.db import connections

from toolbelt import conf
from toolbelt.control import repeating, writing
from toolbelt.control.alerts import events
from toolbelt.control.config import belt_texts
from toolbelt.core import alerts, errors
from toolbelt.store import alerts as rows

Delivery = rows.Delivery
latest, counts = rows.latest, rows.counts

SECONDS = 30.0

_log = structlog.get_logger(__name__)
# Sends a message, and returns why it was not received; empty if it was. The runtime registers it.
_send: Callable[[alerts.Destination, alerts.Plan, Sequence[alerts.Alert]], str] | None = None


def register(send: Callable[[alerts.Destination, alerts.Plan, Sequence[alerts.Alert]], str]) -> None:
    """Set what sends messages. For Django's start."""
    global _send
    _send = send


def plan() -> alerts.Plan:
    """Return the destinations; none if the installation has no file of them."""
    if not conf.ALERTS_FILE:
        return alerts.Plan()
    try:
        document = belt_texts.read(Path(conf.ALERTS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return alerts.Plan(problems=(f"{conf.ALERTS_FILE} cannot be read: {error}",))
    return alerts.plan(document)


def run(declared: alerts.Plan) -> int:
    """Notice what is new, and deliver what is due; return how many alerts were received."""
    rows.note(events.current(), declared.destinations)
    return sum(_deliver(declared, destination) for destination in declared.destinations)


def test(write: writing.Write, name: str) -> Delivery:
    """Send a test to a destination, and return its delivery.

    Raise errors.NotFound for an unknown one, and errors.Invalid if the file of destinations cannot be used.
    """
    declared = plan()
    if declared.problems:
        raise errors.Invalid([errors.Problem(path="alerts", message=each) for each in declared.problems])
    destination = next((each for each in declared.destinations if each.name == name), None)
    if destination is None:
        raise errors.NotFound("destination", name, [each.name for each in declared.destinations])
    message = f"A test of the destination {name}, sent by {write.actor.name}."
    key = rows.test(alerts.Alert(event=alerts.TEST, subject=name, text=message, path="/alerts/"), destination)
    with writing.begin():
        writing.record(write, "alert", name, action="alert.test", before=None, after=None)
    _deliver(declared, destination, only=key)
    return rows.find(key)


def _deliver(declared: alerts.Plan, destination: alerts.Destination, *, only: int | None = None) -> int:
    taken = rows.take(destination.name, only=only)
    if not taken or _send is None:
        return 0
    error = _send(destination, declared, [each.alert for each in taken])
    if error:
        _log.warning("alerts not delivered", destination=destination.name, error=error)
        rows.failed(taken, error)
        return 0
    rows.delivered(taken)
    return len(taken)


def _run() -> float:
    """Run, if there is a file; return the seconds until the next time."""
    if not conf.ALERTS_FILE:
        return SECONDS
    try:
        run(plan())
    except Exception:
        _log.exception("alerts not delivered")
    finally:
        connections.close_all()
    return SECONDS


_thread = repeating.Repeating("toolbelt-alerts", _run, SECONDS)
start, stop = _thread.start, _thread.stop
