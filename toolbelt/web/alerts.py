"""Alerts: where they are sent, what there is to be notified of, the latest deliveries, and a test."""

from __future__ import annotations

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import alerts
from toolbelt.core import alerts as values
from toolbelt.web.kit import forms as kit
from toolbelt.web.kit import http, notices, pieces, responses, words

MAX_LISTED = 50
_SHAPES = {"waiting": "discoverable", "delivered": "active", "failed": "unavailable"}
_WAYS = {
    "webhook": "Webhook, signed",
    "slack": "Chat, in Slack’s form",
    "apprise": "Apprise",
    "people": "Mail to each person who chose it",
}


class Trial(kit.Change):
    """The destination to send a test to."""

    destination = forms.CharField(max_length=64)


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    if not request.user.has_perm("toolbelt.view_alert"):
        raise PermissionDenied
    return responses.show(request, _Page(), "alerts/alerts.html")


@require_POST
def test(request: http.Request) -> HttpResponse:
    """Send a test to a destination."""
    if not request.user.has_perm("toolbelt.test_alert"):
        raise PermissionDenied
    responses.declare(request, reverse("web:alerts"), refusal="Not sent")
    form = Trial(request.POST)
    name = form.checked()["destination"]
    delivery = alerts.test(responses.write(request, form.cleaned_data), name)
    if delivery.state == "delivered":
        return responses.respond(request, notices.Notice(text=f"{name} received a test."))
    notice = notices.Notice(text=f"{name} did not receive it: {delivery.error}.", tone="refused")
    return responses.respond(request, notice)


class _Page(pieces.Page):
    """The destinations, the events, and the latest deliveries."""

    def __init__(self) -> None:
        plan, counts = alerts.plan(), alerts.counts()
        self.problems = plan.problems
        self.destinations = tuple(_Destination(each, counts.get(each.name, {})) for each in plan.destinations)
        self.events = tuple((text, severity) for severity, text in values.EVENTS.values())
        self.deliveries = tuple(map(_Delivery, alerts.latest(MAX_LISTED)))


class _Destination(pieces.View):
    """A destination, without its address, and what became of its deliveries."""

    def __init__(self, destination: values.Destination, counts: dict[str, int]) -> None:
        self.name, self.way = destination.name, _WAYS[destination.way]
        self.when = (
            f"one message a day, at {values.DIGEST_HOUR:02}:00 UTC" if destination.daily else "immediately"
        )
        if destination.way == "people":
            self.when = "when they chose it on their account"
        is_all = len(destination.events) == len(values.EVENTS)
        events = [values.EVENTS[event][1] for event in destination.events]
        self.events = "every event" if is_all else words.listing(events)
        self.severity = "" if destination.severity == "info" else f"from {destination.severity} on"
        self.counts = tuple((state, counts[state]) for state in _SHAPES if counts.get(state))


class _Delivery(pieces.View):
    """A delivery."""

    def __init__(self, delivery: alerts.Delivery) -> None:
        self.destination, self.text = delivery.destination, delivery.alert.text
        self.severity, self.path = delivery.alert.severity, delivery.alert.path
        self.state, self.shape = delivery.state, _SHAPES.get(delivery.state, "dormant")
        self.attempts, self.error, self.delivered = delivery.attempts, delivery.error, delivery.delivered
        self.next = words.in_full(delivery.next_attempt) if delivery.state == "waiting" else ""
