"""Limits on logins. Few passwords are hashed at a time: each takes 100 MB, and anyone can make the server hash one.

:class:`AxesHandler` also limits failed logins by IP address for all user names, besides Axes's limit for a name at an
address. A successful login resets only the count of its own user name.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from axes import attempts, models
from axes.handlers import database
from django.conf import settings
from django.contrib.auth import hashers
from django.db.models import Sum
from django.http import HttpResponse
from django.utils.deprecation import MiddlewareMixin

from toolbelt.web.kit import http, page_shell

MAX_CONCURRENT = 2
# The seconds that a login waits for its turn to hash.
MAX_WAIT = 5.0
# The most failed logins of an address, for all user names together, in the cool-off time of Axes.
MAX_FAILURES_OF_ADDRESS = 50

# Both end in a space, which forms strip: a name that someone enters is never one of these.
_SECOND_FACTOR, _CONFIRMATION = " (second factor) ", " (confirmation) "
_turns = threading.BoundedSemaphore(MAX_CONCURRENT)


class BusyError(Exception):
    """Too many passwords are being hashed."""


class Argon2PasswordHasher(hashers.Argon2PasswordHasher):
    """Django's hasher, with a limit on concurrent hashes in a process. The hashes are the same."""

    def encode(self, password: str, salt: str) -> str:
        """Hash a password. Raise BusyError if too many are being hashed."""
        with _turn():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Return whether the password matches. Raise BusyError if too many are being hashed."""
        with _turn():
            return super().verify(password, encoded)


class BusyMiddleware(MiddlewareMixin):
    """Respond with 503 while no password can be hashed."""

    async_capable = False

    def process_exception(self, request: http.Request, exception: Exception) -> HttpResponse | None:
        """Return a page that says to try again."""
        return page_shell.busy(request, round(MAX_WAIT)) if isinstance(exception, BusyError) else None


class AxesHandler(database.AxesDatabaseHandler):  # type: ignore[misc]
    """Axes's handler, with an additional limit for each address."""

    def is_locked(self, request: Any, credentials: dict[str, Any] | None = None) -> bool:
        """Return whether this login is rejected without a check."""
        if super().is_locked(request, credentials):
            return True
        if is_locked_everywhere(request, (credentials or {}).get("username", "")):
            return True
        since = attempts.get_cool_off_threshold(request)
        of_address = models.AccessAttempt.objects.filter(
            ip_address=request.axes_ip_address, attempt_time__gte=since
        )
        return _failures(of_address) >= MAX_FAILURES_OF_ADDRESS


def of_second_factor(name: str) -> str:
    """Return the name under which the failed second factors of a user, or of their confirmations, are counted."""
    return f"{name}{_SECOND_FACTOR}"


def of_confirmation(name: str) -> str:
    """Return the name under which a user's failed confirmations are counted.

    It is not that of logins: who has a stolen session must not lock its owner out.
    """
    return f"{name}{_CONFIRMATION}"


def is_locked_everywhere(request: Any, counted: str) -> bool:
    """Return whether no code is accepted from any address, for a name of :func:`of_second_factor`.

    Who guesses a code has the password or a session, and may have many addresses.
    """
    if not counted.endswith(_SECOND_FACTOR):
        return False
    since = attempts.get_cool_off_threshold(request)
    of_name = models.AccessAttempt.objects.filter(username=counted, attempt_time__gte=since)
    return _failures(of_name) >= settings.AXES_FAILURE_LIMIT


def _failures(counted: Any) -> int:
    return counted.aggregate(total=Sum("failures_since_start"))["total"] or 0


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    if not _turns.acquire(timeout=MAX_WAIT):
        raise BusyError
    try:
        yield
    finally:
        _turns.release()
