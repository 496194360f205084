"""What clients discover: the metadata of an agent's address (RFC 9728) and of the authorization server (RFC 8414).

Both name the host that the client asked, and look the same for agents that do not exist.
"""

from __future__ import annotations

import urllib.parse

from django.contrib.auth import decorators
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe
from oauth2_provider.views import metadata

from toolbelt import conf
from toolbelt.api import limits
from toolbelt.control.people import sign_in_attempts
from toolbelt.core import agent_addresses
from toolbelt.mcp import discovery

# The requests of an address for metadata that are recorded, and its registrations that are accepted, in a minute.
PER_MINUTE = 10
SCOPES = ("tools",)


def origin(request: HttpRequest) -> str:
    """Return the scheme and the host that the client used: the issuer, and the beginning of every resource."""
    return request.build_absolute_uri("/").removesuffix("/")


@method_decorator(decorators.login_not_required, name="dispatch")
class ServerMetadata(metadata.OAuthServerMetadataView):  # type: ignore[misc]
    """The library's view."""


@decorators.login_not_required
@require_safe
def of_resource(request: HttpRequest, resource: str) -> HttpResponse:
    """Return the metadata of an agent's address, with exactly the path that the client used."""
    found = agent_addresses.read(f"/{resource}")
    if found is None:
        return discovery.nothing_here(request)
    address = request.META["REMOTE_ADDR"]
    if not limits.rates.take(f"discovery {address}", PER_MINUTE):
        sign_in_attempts.discovered(found[0], address, request.headers.get("User-Agent", "") or "unknown")
    document = {
        "resource": f"{origin(request)}/{urllib.parse.quote(resource)}",
        "authorization_servers": [origin(request)],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": f"Toolbelt {conf.ENVIRONMENT_NAME}".strip(),
    }
    return JsonResponse(document, headers={"Access-Control-Allow-Origin": "*"})
