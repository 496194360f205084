"""The headers that every answer made in front of Django has."""

from __future__ import annotations

from django.conf import settings

Headers = list[tuple[bytes, bytes]]


def of(scheme: str, request_id: str) -> Headers:
    """Return the headers of an answer to a request that came over ``scheme``."""
    headers = [(b"x-content-type-options", b"nosniff"), (b"x-request-id", request_id.encode())]
    if scheme == "https" and settings.SECURE_HSTS_SECONDS:
        also = "; includeSubDomains" if settings.SECURE_HSTS_INCLUDE_SUBDOMAINS else ""
        policy = f"max-age={settings.SECURE_HSTS_SECONDS}{also}"
        headers.append((b"strict-transport-security", policy.encode()))
    return headers
