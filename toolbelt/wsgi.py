"""The WSGI application: the same as `toolbelt.asgi`, for hosts that only support WSGI."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core import wsgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbelt.settings")

django = wsgi.get_wsgi_application()

# Behind Django's start, because settings are read by then.
from toolbelt import processes  # noqa: E402
from toolbelt.front import request_limits  # noqa: E402

_limited = request_limits.WsgiRequestLimits(django)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a request. The first one starts what a server runs.

    Not the import: a process that only imports the application and then forks, as `gunicorn --preload` does, would
    start threads that its workers do not have.
    """
    processes.start_all("server")
    return _limited(environ, start_response)
