"""Who stays logged in, besides those who log in with a password by Django's own backend."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import backends

from toolbelt import conf


class SuperusersBackend(backends.ModelBackend):
    """Passwords of superusers only. The password is checked first, so that the time does not say who is one."""

    def user_can_authenticate(self, user: Any) -> bool:
        """Return whether the user may log in with a password, and stay logged in."""
        return super().user_can_authenticate(user) and user.is_superuser


class ProviderBackend(backends.ModelBackend):
    """Logins with the provider, which end when it is no longer set. No password is one of these."""

    def authenticate(self, *args: Any, **credentials: Any) -> None:
        """Accept nothing."""

    def get_user(self, user_id: int) -> Any:
        """Return a user who is logged in with the provider; None if they no longer are."""
        return super().get_user(user_id) if conf.SIGN_IN_ISSUER else None
