"""The installation's URLs. Those of the dashboard are in `toolbelt.web.urls`."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from toolbelt.api import application, views
from toolbelt.mcp import discovery, unavailable_page
from toolbelt.web.kit import health, page_shell
from toolbelt.web.login import views as login

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("favicon.ico", page_shell.icon, name="favicon"),
    # The account page, which limits guesses at the current password, is the only one that changes it.
    path("admin/password_change/", RedirectView.as_view(pattern_name="web:account")),
    # The dashboard's login, which asks for the second factor, is the only one.
    path("admin/login/", login.of_admin),
    path("admin/", admin.site.urls),
    path("api/v1/docs", views.page, name="api_docs"),
    path("api/v1/openapi.json", views.document, name="openapi"),
    path("api/v1/", application.api.urls),
    # Answered in front of Django, where there is a front.
    path("mcp", unavailable_page.page, name="mcp"),
    path("mcp/<path:rest>", unavailable_page.page, name="mcp_of_agent"),
    path("", include("toolbelt.oauth.urls")),
    # Where else MCP clients look for OAuth, and for the transport before Streamable HTTP.
    re_path(discovery.OAUTH, discovery.nothing_here, name="no_oauth"),
    re_path(discovery.SSE, discovery.no_sse, name="no_sse"),
    path("", include("toolbelt.web.urls")),
]

handler400 = "toolbelt.web.kit.page_shell.bad_request"
handler403 = "toolbelt.web.kit.page_shell.forbidden"
handler404 = "toolbelt.web.kit.page_shell.not_found"
handler500 = "toolbelt.web.kit.page_shell.server_error"
