"""The two applications that the benchmark over HTTP compares: Toolbelt, and one that only returns the same response.

Both report the resources that their process has used so far, at an address that is neither counted nor logged.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette import applications, requests, responses, routing

USAGE_PATH = "/used"

Application = Callable[[Any, Any, Any], Awaitable[None]]


def measured(application: Application) -> Application:
    """Add an endpoint to an application that returns its process's CPU seconds and memory in bytes."""

    async def measured(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != USAGE_PATH:
            await application(scope, receive, send)
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        figures = {"seconds": used.ru_utime + used.ru_stime, "bytes": _memory()}
        await responses.JSONResponse(figures)(scope, receive, send)

    return measured


def _memory() -> int:
    """Return the memory of the process, or its maximum if the current value is unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def bare() -> Application:
    """Return the bare application. BENCH_ANSWERS is the directory of the bytes that it returns."""
    directory = Path(os.environ["BENCH_ANSWERS"])
    bodies = {method: (directory / method).read_bytes() for method in ("GET", "POST")}
    headers = {method: json.loads((directory / f"{method}.headers").read_text()) for method in bodies}
    unchanged = {name: value for name, value in headers["GET"].items() if name != "content-type"}

    async def surface(request: requests.Request) -> responses.Response:
        method = request.method
        if method == "POST":
            await request.body()
        elif request.headers.get("if-none-match") == unchanged["etag"]:
            return responses.Response(status_code=304, headers=unchanged)
        return responses.Response(bodies[method], headers=headers[method])

    route = routing.Route("/api/v1/agents/{agent}/surface", surface, methods=["GET", "POST"])
    return measured(applications.Starlette(routes=[route]))


def bare_mcp() -> Application:
    """Return the bare application for a list of tools. BENCH_ANSWERS is the directory of its bytes."""
    directory = Path(os.environ["BENCH_ANSWERS"])
    body, headers = (directory / "POST").read_bytes(), json.loads((directory / "POST.headers").read_text())

    async def list_tools(request: requests.Request) -> responses.Response:
        await request.body()
        return responses.Response(body, headers=headers)

    return measured(
        applications.Starlette(routes=[routing.Route("/mcp/{agent}", list_tools, methods=["POST"])])
    )


def toolbelt() -> Application:
    """Return Toolbelt's application, as a server runs it."""
    from toolbelt import asgi

    return measured(asgi.application)
