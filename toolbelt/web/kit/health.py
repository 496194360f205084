"""Health, readiness and metrics of this process, for load balancers and scrapers."""

import threading

from django.contrib.auth import decorators
from django.db import Error, connection
from django.db.migrations import executor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import crypto
from django.views.decorators import cache, http
from django_prometheus import exports

from toolbelt import conf
from toolbelt.control.config import installation
from toolbelt.control.doctor import plugins
from toolbelt.control.servers import states
from toolbelt.runtime import availability, masking

# Set once this process has found no pending migrations: the check reads every migration, and migrations are not
# reverted while a process runs.
migrated = threading.Event()

DATABASE_REPLACED = "the database file was replaced while the server was running: restart the server"


@decorators.login_not_required
@cache.never_cache
@http.require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200 while the process runs. An unavailable database is no reason to restart it."""
    return JsonResponse({"status": "ok"})


@decorators.login_not_required
@cache.never_cache
@http.require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 if the database responds and has every migration of this code, otherwise 503.

    A process whose database connections are all taken is busy but still ready: removing it from rotation would
    move its load to the others. With ``?full``, staff and requests with the metrics token get the findings about
    plugins and servers, too, which do not change the status.
    """
    is_full = "full" in request.GET
    if is_full and not _may_read_details(request):
        return _login_required("readyz")
    try:
        is_busy = installation.is_database_busy()
        missing = 0 if migrated.is_set() else _unapplied_migrations()
    except Error:
        is_busy, missing = False, None
    if availability.file_was_replaced():
        return _unavailable(DATABASE_REPLACED)
    if missing is None:
        return _unavailable("the database does not respond")
    if missing:
        return _unavailable(f"pending migrations: {missing}")
    migrated.set()
    status: dict[str, object] = {"status": "busy" if is_busy else "ok"}
    if is_full:
        status["findings"] = [
            {field: masking.mask(text) for field, text in finding.document().items()}
            for finding in plugins.examine(states.load())
        ]
    return JsonResponse(status)


def _unavailable(reason: str) -> HttpResponse:
    return JsonResponse({"status": "unavailable", "because": reason}, status=503)


@decorators.login_not_required
@cache.never_cache
@http.require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the Prometheus metrics, to staff and to requests with the token."""
    if not _may_read_details(request):
        return _login_required("metrics")
    response: HttpResponse = exports.ExportToDjangoView(request)
    return response


def _login_required(realm: str) -> HttpResponse:
    refusal = HttpResponse("Log in as staff, or send the metrics token.\n", "text/plain", 401)
    refusal.headers["WWW-Authenticate"] = f'Bearer realm="{realm}"'
    return refusal


def _may_read_details(request: HttpRequest) -> bool:
    return _has_metrics_token(request) or (request.user.is_active and request.user.is_staff)


def _has_metrics_token(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return (
        bool(conf.METRICS_TOKEN)
        and scheme.lower() == "bearer"
        and crypto.constant_time_compare(token.strip(), conf.METRICS_TOKEN)
    )


def _unapplied_migrations() -> int:
    migrations = executor.MigrationExecutor(connection)
    return len(migrations.migration_plan(migrations.loader.graph.leaf_nodes()))
