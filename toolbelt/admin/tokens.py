"""The admin pages of API tokens, which can only be revoked here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.http import HttpRequest

from toolbelt import models
from toolbelt.admin import entry_actions
from toolbelt.control import writing
from toolbelt.control.people import tokens

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[models.ApiToken]
else:
    _Admin = admin.ModelAdmin


@admin.register(models.ApiToken)
class ApiTokenAdmin(_Admin):
    """API tokens. The dashboard, the API and ``manage.py token issue`` create them, and show them once."""

    fields = [
        *("prefix", "name", "agent", "user", "scope", "created", "issued_by", "expires", "revoked"),
        *("last_used", "state"),
    ]
    list_display = [
        *("prefix", "name", "agent", "user", "scope", "state", "created", "issued_by", "expires", "revoked"),
        "last_used",
    ]
    list_select_related = ["agent", "user"]
    list_filter = ["scope", ("revoked", admin.EmptyFieldListFilter)]
    search_fields = ["prefix", "name", "agent__key", "user__username"]
    date_hierarchy = "created"
    actions = ["revoke"]

    def get_queryset(self, request: HttpRequest) -> Any:
        """Leave out those of clients that signed in, which the dashboard shows as connections."""
        return super().get_queryset(request).filter(connection=None)

    @admin.display
    def state(self, token: models.ApiToken) -> str:
        """Return whether the token is valid, and if not, why."""
        rejection = tokens.rejection_of(token)
        return f"not valid: {rejection}" if rejection else "valid"

    @admin.action(permissions=["revoke"], description="Revoke selected tokens permanently")
    def revoke(self, request: HttpRequest, queryset: Any) -> None:
        """Revoke the selected tokens: all or none."""
        with writing.begin():
            before = [row.prefix for row in queryset if row.revoked is None]
            for prefix in before:
                tokens.revoke(entry_actions.write(request), prefix)
        self.message_user(request, f"{len(before)} revoked.", messages.SUCCESS)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change tokens: revoking is the only change."""
        return request.user.has_perm("toolbelt.change_apitoken")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether a token may be deleted: only along with its agent or user, so that its owner stays visible."""
        here = request.resolver_match
        return here is None or not (here.url_name or "").startswith(f"toolbelt_{self.opts.model_name}_")
