"""The admin page of deliveries of alerts: read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from toolbelt import models

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[models.AlertDelivery]
else:
    _Admin = admin.ModelAdmin


@admin.register(models.AlertDelivery)
class AlertDeliveryAdmin(_Admin):
    list_display = ["alert", "destination", "state", "attempts", "next_attempt", "delivered", "error"]
    list_select_related = ["alert"]
    list_filter = ["state", "destination"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: a server adds them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: a server delivers them."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: a server deletes old ones."""
        return False
