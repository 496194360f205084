"""The addresses of the authorization server. They have the names under which the library looks for them."""

from django.urls import path, re_path

from toolbelt.oauth import consent, metadata, registration, tokens

app_name = "oauth2_provider"

urlpatterns = [
    path(
        ".well-known/oauth-authorization-server",
        metadata.ServerMetadata.as_view(),
        name="oauth-server-metadata",
    ),
    re_path(
        r"^\.well-known/oauth-protected-resource/(?P<resource>mcp/[A-Za-z0-9_.-]{1,64}(?:/s/.+)?/?)$",
        metadata.of_resource,
        name="oauth-resource-metadata",
    ),
    path("oauth/register", registration.register, name="dcr-register"),
    path("oauth/authorize", consent.authorize, name="authorize"),
    path("oauth/token", tokens.issue, name="token"),
    path("oauth/revoke", tokens.revoke, name="revoke-token"),
]
