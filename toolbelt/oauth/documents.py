"""Client ID metadata documents: a client whose id is the address of a document about itself, instead of registering.

They are off by default (`TOOLBELT_CLIENT_DOCUMENTS`). A document is fetched only for a person who is logged in and
opens the client's question, by the client of plugins, which refuses private addresses and follows no redirects.
"""

from __future__ import annotations

import urllib.parse
from typing import Any

import httpx
from asgiref.sync import async_to_sync
from django.urls import reverse
from oauth2_provider import cimd

from toolbelt.core import strict_json
from toolbelt.oauth import registration
from toolbelt.runtime import http

MAX_BYTES = 16_384
SECONDS = 5.0
# How long a document is used before it is fetched again.
MAX_AGE = 86_400


class Permission:
    """Lets the library fetch a document for the consent page only: anyone may send requests for tokens."""

    def has_permission(self, request: Any, client_id: str) -> bool:
        """Return whether a document may be fetched for this request."""
        return bool(urllib.parse.urlsplit(request.uri).path == reverse("oauth2_provider:authorize"))


class Fetcher:
    """Fetches a document and checks what the library does not."""

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """Return the document at this address, and how long to use it in seconds. Raise cimd.CIMDError."""
        if problem := _problem(client_id):
            raise cimd.CIMDError(problem)
        try:
            content = async_to_sync(_read)(client_id)
            document = strict_json.read(content, registration.MAX_DEPTH)
        except (httpx.HTTPError, strict_json.UnreadableError) as error:
            raise cimd.CIMDError(f"could not be read: {error}") from error
        if not isinstance(document, dict):
            raise cimd.CIMDError("is not a JSON object")
        redirects = document.get("redirect_uris")
        for uri in redirects if isinstance(redirects, list) else ():
            if isinstance(uri, str) and (problem := registration.redirect_problem(uri)):
                raise cimd.CIMDError(problem)
        name = document.get("client_name", "")
        shown = registration.shown_name(name) if isinstance(name, str) else ""
        return {**document, "client_name": shown or urllib.parse.urlsplit(client_id).hostname}, MAX_AGE


def _problem(client_id: str) -> str:
    """Return why an address is none of a document (draft-ietf-oauth-client-id-metadata-document, 3); empty if it is."""
    parts = urllib.parse.urlsplit(client_id)
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc or "#" in client_id:
        return "is no https address without a user and a fragment"
    if not parts.path.strip("/") or {".", ".."} & {*parts.path.split("/")}:
        return "has no path, or one with dots"
    return ""


async def _read(address: str) -> bytes:
    async with http.client() as client:
        headers = {"accept": "application/json"}
        async with client.stream("GET", address, headers=headers, timeout=SECONDS) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != 200 or not (kind == "application/json" or kind.endswith("+json")):
                raise httpx.RequestError(f"was answered {response.status_code} as {kind[:40] or 'nothing'}")
            content = b""
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_BYTES:
                    raise httpx.RequestError(f"has more than {MAX_BYTES} bytes")
            return content
