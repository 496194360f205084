"""What each person chose for their own use of the dashboard."""

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

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user}"
