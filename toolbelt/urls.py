"""Where does each address lead? The screens bring their own; here are the addresses of the installation itself."""

from django.contrib import admin
from django.urls import include, path, re_path

from toolbelt.api import application, views
from toolbelt.mcp import absent, discovery
from toolbelt.web import frame, health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("favicon.ico", frame.icon, name="favicon"),
    path("admin/", admin.site.urls),
    path("api/v1/docs", views.page, name="api_docs"),
    path("api/v1/openapi.json", views.document, name="openapi"),
    path("api/v1/", application.api.urls),
    # Answered in front of Django, where there is a front.
    path("mcp", absent.page, name="mcp"),
    path("mcp/<path:rest>", absent.page, name="mcp_of_agent"),
    # Where MCP clients look for OAuth, and for the transport before Streamable HTTP.
    re_path(discovery.OAUTH, discovery.no_oauth, name="no_oauth"),
    re_path(discovery.SSE, discovery.no_sse, name="no_sse"),
    path("", include("toolbelt.web.urls")),
]

handler400 = "toolbelt.web.frame.bad_request"
handler403 = "toolbelt.web.frame.forbidden"
handler404 = "toolbelt.web.frame.not_found"
handler500 = "toolbelt.web.frame.server_error"
