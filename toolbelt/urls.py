"""Where does each address lead? The screens bring their own; here are the addresses of the installation itself."""

from django.contrib import admin
from django.urls import include, path

from toolbelt.api import application, views
from toolbelt.web import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/v1/docs", views.page, name="api_docs"),
    path("api/v1/openapi.json", views.document, name="openapi"),
    path("api/v1/", application.api.urls),
    path("", include("toolbelt.web.urls")),
]

handler400 = "toolbelt.web.frame.bad_request"
handler500 = "toolbelt.web.frame.server_error"
