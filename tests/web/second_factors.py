"""Helpers that have second factors, and log in with them as a browser does."""

from __future__ import annotations

import base64
import time
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.twofactor import totp
from django.core.cache import cache
from django.test import Client

from toolbelt.control import writing
from toolbelt.control.people import second_factors

PASSWORD = "correct horse"


def code(secret: str, steps: int = 0) -> str:
    """Return the code that an app shows now, or a number of steps of 30 seconds later (RFC 6238)."""
    app = totp.TOTP(base64.b32decode(secret), 6, hashes.SHA1(), 30)  # noqa: S303 (what apps use)
    return app.generate(int(time.time()) + 30 * steps).decode()


def set_up(user: Any) -> tuple[str, list[str]]:
    """Set up an app for a user; return its secret and the recovery codes. The code of the step before is used up."""
    secret = second_factors.new_secret()
    write = writing.by(user.get_username(), via="screen")
    return secret, second_factors.add_app(write, user, secret, code(secret, -1))


def give_password(browser: Client, name: str = "olive", **fields: Any) -> Any:
    """Send the first step of a login."""
    return browser.post("/login/", {"username": name, "password": PASSWORD, **fields})


def give_code(browser: Client, text: str, **fields: Any) -> Any:
    """Send the second step of a login, in a process that remembers nothing."""
    cache.clear()
    return browser.post("/login/second-factor/", {"code": text, **fields})


def confirmed(browser: Client) -> Client:
    """Return the browser, whose person has just shown who they are."""
    session = browser.session
    session["toolbelt.confirmed"] = time.time()
    session.save()
    return browser


def is_logged_in(browser: Client) -> bool:
    """Return whether the browser may open a page."""
    return browser.get("/account/").status_code == 200
