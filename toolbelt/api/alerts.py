"""Alerts of operators: where they are sent, and their deliveries."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, problems, schemas
from toolbelt.control import alerts
from toolbelt.core import alerts as values

router = ninja.Router(tags=["alerts"])
# How many deliveries are listed.
MAX_LISTED = 100


class Destination(ninja.Schema):
    """Where alerts are sent; its address and secret are in the environment, and are not shown."""

    name: str
    way: Annotated[str, pydantic.Field(description="`webhook`, `slack`, `apprise` or `people`.")]
    events: list[str]
    severity: Annotated[str, pydantic.Field(description="Alerts of at least this severity.")]
    daily: Annotated[bool, pydantic.Field(description="In one message a day.")]


class Delivery(ninja.Schema):
    """An alert on its way to a destination."""

    destination: str
    event: str
    severity: str
    text: str
    state: Annotated[str, pydantic.Field(description="`waiting`, `delivered` or `failed`.")]
    attempts: int
    next_attempt: dt.datetime | None
    delivered: dt.datetime | None
    error: Annotated[str, pydantic.Field(description="Why the last attempt failed, without secrets.")]


class Alerts(ninja.Schema):
    """The destinations, what is wrong with their file, and the latest deliveries."""

    destinations: list[Destination]
    problems: list[str]
    deliveries: list[Delivery]


class AlertTest(schemas.Body):
    """The destination to send a test to."""

    destination: Annotated[str, pydantic.Field(max_length=64)]


@router.get("/alerts", auth=auth.reading("toolbelt.view_alert"), response=Alerts)
def list_alerts(request: HttpRequest) -> Any:
    """List where alerts are sent, and the latest deliveries."""
    plan = alerts.plan()
    return {
        "destinations": [
            {
                "name": each.name,
                "way": each.way,
                "events": list(each.events),
                "severity": each.severity,
                "daily": each.daily,
            }
            for each in plan.destinations
        ],
        "problems": list(plan.problems),
        "deliveries": [document(each) for each in alerts.latest(MAX_LISTED)],
    }


@router.post(
    "/alerts/test",
    auth=auth.writing("toolbelt.test_alert"),
    response={200: Delivery, **problems.documented(404)},
)
def test_alert(request: HttpRequest, body: AlertTest) -> Any:
    """Send a test to a destination immediately; the answer says whether it was received, or why not."""
    return document(alerts.test(auth.write(request), body.destination))


def document(delivery: alerts.Delivery) -> dict[str, Any]:
    """Return a delivery as a JSON object."""
    alert: values.Alert = delivery.alert
    return {
        "destination": delivery.destination,
        "event": alert.event,
        "severity": alert.severity,
        "text": alert.text,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "next_attempt": delivery.next_attempt if delivery.state == "waiting" else None,
        "delivered": delivery.delivered,
        "error": delivery.error,
    }
