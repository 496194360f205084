"""Alerts of operators: what there is to be notified of, and its delivery to the destinations of the installation.

A server notices and delivers in the background, if the setting TOOLBELT_ALERTS_FILE names a file. Several may do so:
what one has stored or taken, no other does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from toolbelt import conf
from toolbelt.control import repeating, writing
from toolbelt.control.alerts import events, people
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
        return alerts.Plan(problems=(f"it cannot be read: {error}",))
    return alerts.plan(document)


def run(declared: alerts.Plan) -> int:
    """Notice what is new, and deliver what is due; return how many alerts were received.

    What fails, the others do not: what there is to be notified of, or one destination.
    """
    received = 0
    destinations = functools.cache(lambda: _each(declared))
    for names, load in events.SOURCES.items():
        try:
            rows.note([*load()], destinations, names)
        except Exception:
            _log.exception("alerts not noticed", events=names)
    due = rows.due()
    for destination in destinations() if due else ():
        if destination.name not in due:
            continue
        try:
            received += _deliver(declared, destination)
        except Exception:
            _log.exception("alerts not delivered", destination=destination.name)
    return received


def _each(declared: alerts.Plan) -> list[alerts.Destination]:
    return [each for destination in declared.destinations for each in people.each(destination)]


def sends_to_people() -> bool:
    """Return whether people can get mail of their own."""
    return any(destination.way == "people" for destination in plan().destinations)


def problems() -> list[str]:
    """Return what is wrong with the file of destinations, and which of them were not reached the last time."""
    declared = plan()
    found = [f"{conf.ALERTS_FILE}: {each}" for each in declared.problems]
    errors_of = rows.last_errors([each.name for each in _each(declared)])
    return [*found, *(f"Alerts do not reach {name}: {error}." for name, error in errors_of.items())]


def test(write: writing.Write, name: str) -> Delivery:
    """Send a test to a destination, and return its delivery. A destination for people sends it to the sender alone.

    Raise errors.NotFound for an unknown one, errors.Invalid if it may be one that the file declares wrongly, and
    errors.Refused if the person gets no mail.
    """
    declared = plan()
    destination = next((each for each in declared.destinations if each.name == name), None)
    if destination is None and declared.problems:
        raise errors.Invalid([errors.Problem(path="alerts", message=each) for each in declared.problems])
    if destination is None:
        raise errors.NotFound("destination", name, [each.name for each in declared.destinations])
    if destination.way == "people":
        own = people.name_of(destination, write.actor.name)
        destination = next((each for each in people.each(destination) if each.name == own), None)
        if destination is None:
            raise errors.Refused(
                f"{write.actor.name} gets no mail: choose it on the page Account, for which an account needs a mail"
                " address."
            )
        name = own
    message = f"A test of the destination {name}, sent by {write.actor.name}."
    key = rows.test(alerts.Alert(event=alerts.TEST, subject=name, text=message, path="/alerts/"), destination)
    with writing.begin():
        writing.record(write, "alert", name, action="alert.test", before=None, after=None)
    _deliver(declared, destination, only=key)
    return rows.find(key)


def _deliver(declared: alerts.Plan, destination: alerts.Destination, *, only: int | None = None) -> int:
    taken = rows.take(destination.name, only=only)
    if destination.about is not None:
        # Since it was noticed, the person may have lost the right to decide about it.
        rows.drop([each for each in taken if not destination.wants(each.alert)])
        taken = [each for each in taken if destination.wants(each.alert)]
    if not taken or _send is None:
        return 0
    try:
        error = _send(destination, declared, [each.alert for each in taken])
    except Exception as failure:
        # Its text may have a secret.
        error = type(failure).__name__
    if error:
        _log.warning("alerts not delivered", destination=destination.name, error=error)
        rows.failed(taken, error)
        return 0
    rows.delivered(taken)
    return len(taken)


def run_planned() -> None:
    """Run, if there is a file."""
    if conf.ALERTS_FILE:
        run(plan())


_thread = repeating.Repeating("toolbelt-alerts", run_planned, SECONDS, "alerts not delivered")
start, stop = _thread.start, _thread.stop
