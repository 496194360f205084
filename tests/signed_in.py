"""Steps of a sign-in at a server, as a person does them in the dashboard and at the authorization server."""

from __future__ import annotations

import html
import re
import urllib.parse
from typing import Any

import httpx
from cryptography.fernet import Fernet
from django.test import Client

from tests.plugins.upstream import oauth_server
from toolbelt.control import writing
from toolbelt.control.servers import upstream_servers

SHELL = writing.by("sam", via="command")
BEGIN = "/plugins/{}/sign-in/"
KEY = Fernet.generate_key().decode()


def add(running: oauth_server.Running, name: str = "notes", **connection: Any) -> None:
    """Store the server, by its address alone."""
    upstream_servers.add(SHELL, name, {"url": running.url, **connection})


def begin(browser: Client, name: str = "notes", address: str = BEGIN) -> str:
    """Press *Sign in*, and return the address of the authorization server."""
    page = browser.post(address.format(name))
    assert page.status_code == 200, page.headers
    link = re.search(r'id="leave" href="([^"]+)"', page.content.decode())
    assert link is not None
    return html.unescape(link[1])


_begun = begin


def consent(address: str) -> dict[str, str]:
    """Agree at the authorization server, and return with what the person is sent back."""
    answer = httpx.get(address, follow_redirects=False)
    assert answer.status_code == 302, answer.text
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(answer.headers["location"]).query))


def sign_in(browser: Client, name: str = "notes", *, begin: str = BEGIN) -> Any:
    """Sign in at the server, from the page with this button, and return the last answer."""
    return browser.get("/signed-in/", consent(_begun(browser, name, begin)))
