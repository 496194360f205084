"""Django's own lists of users and groups, for superusers alone.

They change passwords, permissions and superusers without a check and without an entry in the audit log. Administrators
change people in the dashboard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, auth
from django.contrib.admin.utils import unquote
from django.contrib.auth import admin as django_admin
from django.contrib.auth import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

if TYPE_CHECKING:
    _UserAdmin = django_admin.UserAdmin[models.User]
else:
    _UserAdmin = django_admin.UserAdmin


class OfSuperusers:
    """What makes a list one that only superusers see."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return whether the list is shown."""
        return _is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether a row is shown."""
        return _is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return whether a row can be added."""
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether a row can be changed."""
        return _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether a row can be removed."""
        return _is_superuser(request)


class UserAdmin(OfSuperusers, _UserAdmin):
    """Users."""

    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002 (as Django calls it)
        form_url: str = "",
    ) -> HttpResponse:
        """Set the password of another user. One's own is changed on Account, which asks for the current one."""
        if self.get_object(request, unquote(id)) == request.user:
            return redirect("web:account")
        return super().user_change_password(request, id, form_url)


class GroupAdmin(OfSuperusers, django_admin.GroupAdmin):
    """Groups."""


def _is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)


admin.site.unregister([auth.get_user_model(), models.Group])
admin.site.register(auth.get_user_model(), UserAdmin)
admin.site.register(models.Group, GroupAdmin)
