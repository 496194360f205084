"""What the authorization server asks Toolbelt: whom it may give a token, and for which agent.

The library calls an unexpected request anything but refused in places; each method says what it adds.
"""

from __future__ import annotations

import secrets
from typing import Any, Never

from django.db import transaction
from oauth2_provider import models as oauth
from oauth2_provider import oauth2_validators
from oauthlib.oauth2.rfc6749 import errors as oauth_errors

from toolbelt.control.people import client_connections
from toolbelt.core import agent_addresses, api_tokens, errors
from toolbelt.oauth import metadata


def new_token(request: Any) -> str:
    """Return the text of a new token, in the form of Toolbelt's own: logs and secret scanners recognize it."""
    return api_tokens.make(secrets.choice)


class InvalidTargetError(oauth_errors.OAuth2Error):  # type: ignore[misc]
    """The resource is missing, or is none of this server (RFC 8707, 2)."""

    error = "invalid_target"


class Validator(oauth2_validators.OAuth2Validator):  # type: ignore[misc]
    """The library's, bound to agents, people and connections."""

    def validate_scopes(
        self, client_id: str, scopes: list[str], client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Grant the one scope, whatever was asked for: clients ask for scopes that they know from elsewhere."""
        request.scopes = list(metadata.SCOPES)
        return True

    def validate_code(
        self, client_id: str, code: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Return whether the code is valid, and its person still active."""
        is_valid: bool = super().validate_code(client_id, code, client, request, *args, **kwargs)
        return is_valid and request.user.is_active

    def save_bearer_token(self, token: dict[str, Any], request: Any, *args: Any, **kwargs: Any) -> None:
        """Store tokens, for the one agent that the person has allowed. Raise InvalidGrantError or InvalidTargetError.

        A code is used up in the same transaction, so that two requests at once cannot both use it. The library does so
        later.
        """
        with transaction.atomic():
            granted = self._use_up(request)
            sent = [value for name, value in request.decoded_body or () if name == "resource"]
            if len(granted) != 1 or not {*sent} <= {*granted}:
                _refuse_target(request)
            agent = agent_addresses.agent_of_any_host(granted[0])
            try:
                connection = client_connections.check(request.client.pk, request.user, agent)
            except errors.Refused as refused:
                raise oauth_errors.InvalidGrantError(description=str(refused), request=request) from None
            request.resource = granted
            super().save_bearer_token(token, request, *args, **kwargs)
            client_connections.add_token(connection, token["access_token"])

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Do nothing: storing the token has used up the code."""

    def _use_up(self, request: Any) -> list[str]:
        """Use up the code or refresh token, and return the resource for which the person allowed the client.

        Both were valid a moment ago. To another request with the same refresh token at the same time, the library would
        answer the first one's tokens, whose text it does not have.
        """
        if request.grant_type == "refresh_token":
            locked = oauth.RefreshToken.objects.select_for_update().filter(
                pk=request.refresh_token_instance.pk, revoked=None
            )
            if (current := locked.first()) is None:
                raise oauth_errors.InvalidGrantError(request=request)
            return list(current.resource)
        grant = oauth.Grant.objects.select_for_update().filter(code=request.code, application=request.client)
        used = grant.first()
        if used is None:
            raise oauth_errors.InvalidGrantError(request=request)
        grant.delete()
        return list(used.resource)


def _refuse_target(request: Any) -> Never:
    raise InvalidTargetError(
        description="The resource is not the one that was allowed: send the agent's address.", request=request
    )
