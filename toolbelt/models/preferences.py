"""Each person's preferences for the dashboard."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Preferences(models.Model):
    """The choices of one person."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    time_zone = models.CharField(
        max_length=64, blank=True, help_text="The zone in which times are shown. Empty: that of the browser."
    )
    density = models.CharField(
        max_length=11, blank=True, help_text="How dense rows are: compact. Empty: comfortable."
    )
    alerts = models.CharField(
        max_length=5,
        blank=True,
        help_text="When alerts are sent to their mail address: now or daily. Empty: never.",
    )

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user}"


class SavedView(models.Model):
    """Filters of a list that one person saved under a name."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    page = models.CharField(max_length=32, help_text="The list, such as tools.")
    name = models.CharField(max_length=60, help_text="What the person calls these filters.")
    query = models.TextField(help_text="The filters, as the query of the list's address.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "page", "name"], name="saved_view_once")]

    def __str__(self) -> str:
        return f"{self.name} ({self.page}) of {self.user}"
