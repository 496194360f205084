"""Alerts of operators, and their deliveries. Neither configuration nor a secret's place."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from toolbelt.models import fields, naming

DELIVERY_STATES = ("waiting", "delivered", "failed")


class Alert(models.Model):
    """Something that operators are notified of. Of those that last, one is about the same."""

    event = models.CharField(max_length=32, help_text="What kind of alert it is.")
    subject = models.CharField(max_length=200, help_text="What it is about.")
    text = models.TextField(help_text="What operators read.")
    path = models.CharField(max_length=400, help_text="The page about it.")
    details = fields.JSONText(
        shape="object", null=True, blank=True, help_text="What a webhook also receives."
    )
    begun = models.DateTimeField(help_text="When it was noticed.")
    ended = models.DateTimeField(null=True, blank=True, help_text="When it ended. Empty: it lasts.")

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        permissions = [("test_alert", "Can send tests of alerts")]
        indexes = [models.Index(fields=["begun"], name="alert_oldest")]
        constraints = [
            models.UniqueConstraint(
                fields=["event", "subject"], condition=Q(ended=None), name="alert_once_lasting"
            )
        ]

    def __str__(self) -> str:
        return self.text


class AlertDelivery(models.Model):
    """An alert on its way to one destination."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    destination = models.CharField(
        max_length=220, help_text="The name of the destination, and the person if it is for people."
    )
    state = models.CharField(
        max_length=9,
        choices=[(word, word) for word in DELIVERY_STATES],
        default="waiting",
        help_text="What became of it.",
    )
    attempts = models.PositiveSmallIntegerField(default=0, help_text="How often it was tried.")
    next_attempt = models.DateTimeField(help_text="When it is tried next.")
    delivered = models.DateTimeField(null=True, blank=True, help_text="When the destination received it.")
    error = models.TextField(blank=True, help_text="Why the last attempt failed.")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "alert deliveries"
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["next_attempt"], condition=Q(state="waiting"), name="alert_delivery_due")
        ]
        constraints = [
            naming.one_of("alert_delivery", "state", DELIVERY_STATES),
            models.UniqueConstraint(fields=["alert", "destination"], name="alert_delivery_once"),
        ]

    def __str__(self) -> str:
        return f"{self.destination}: {self.alert}"
