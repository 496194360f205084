"""``manage.py serve``: serve the dashboard, the API and MCP with uvicorn."""

import argparse
import importlib.util
import os
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from toolbelt import conf
from toolbelt.control.doctor import machine
from toolbelt.control.servers import states
from toolbelt.core import addresses
from toolbelt.management import demo_repository, terminal
from toolbelt.runtime import demo_plugins, plugins

# How long requests may take to end after SIGTERM, in seconds.
GRACE = 30
_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104


class Command(terminal.Command):
    requires_system_checks = "__all__"
    help = "Serve the dashboard, the API and MCP. Behind a reverse proxy with TLS, unless it is for this machine only."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)"
        )
        parser.add_argument("--port", type=int, default=8000, help="the port to listen on (default: 8000)")
        parser.add_argument("--workers", type=int, default=1, help="the number of processes (default: 1)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        check_port(host, port)
        _check_metrics()
        _check_installation()
        if plugins.file() == demo_plugins.FILE:
            demo_repository.ensure(self.stderr)
            self.stdout.write("Running the demo's tools, because this database has the demo.")
        address = _address(host, port)
        os.environ[states.SERVED_AT] = address
        for line in _greeting(host, port, address):
            self.stdout.write(line)
        self.stdout.flush()
        uvicorn.run(
            "toolbelt.asgi:application",
            host=host,
            port=port,
            workers=max(1, options["workers"]),
            loop="uvloop" if importlib.util.find_spec("uvloop") else "auto",
            http="toolbelt.front.protocol:Protocol",
            lifespan="on",
            access_log=False,
            timeout_graceful_shutdown=GRACE,
        )


def _address(host: str, port: int) -> str:
    """Return the address at which this machine reaches a server that listens there, by a name that it answers to."""
    shown = f"[{host}]" if ":" in host else host
    local = [name for name in settings.ALLOWED_HOSTS if addresses.is_this_machine(name)]
    if local and shown not in local and (host in _EVERY_ADDRESS or addresses.is_this_machine(host)):
        shown = local[0]
    return f"http://{shown}:{port}"


def _greeting(host: str, port: int, address: str) -> Iterator[str]:
    """Yield where the server listens, and the next step."""
    shown = f"[{host}]" if ":" in host else host
    yield f"Serving on http://{shown}:{port}/ (Ctrl+C to stop)."
    users = get_user_model().objects
    if not users.filter(is_active=True).exists():
        yield f"No one can log in yet. Create a login with `{conf.COMMAND} user create NAME --role administrator`."
    elif settings.ENVIRONMENT == "production" and not settings.INSECURE_HTTP:
        yield f"Log in at https://{settings.ALLOWED_HOSTS[0].removeprefix('.')}/, through your reverse proxy with TLS."
    else:
        yield f"Log in at {address}/."
    form = "one JSON object a line" if settings.LOGS_AS_JSON else "as text"
    yield f"Logs go to standard error, {form}, from level {settings.LOG_LEVEL}."
    # The processes of the server open their own.
    connection.close()


def check_port(host: str, port: int) -> None:
    """Raise CommandError if the server could not listen."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the server: a port that was released a moment ago is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(
            f"Port {port} of {host} cannot be used ({reason}): choose another with --port."
        ) from None


def _check_metrics() -> None:
    """Raise CommandError if the processes could not write their metrics."""
    for finding in machine.metrics_directory():
        raise CommandError(f"{finding.message} {finding.way_out}")


def _check_installation() -> None:
    """Raise CommandError if the database or the static files are not those of this version."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError(f"The database is not up to date: run `{conf.COMMAND} migrate`.")
    connection.close()
    for finding in machine.static_files():
        raise CommandError(f"{finding.message} {finding.way_out}")
