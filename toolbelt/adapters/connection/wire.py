"""The requests, responses and retries of the HTTP connections: everything except sending.

A surface request that was not accepted is repeated, because it never writes. A call is never repeated, because it may
have run. An exchange is a generator that yields requests and pauses and receives responses, so that event loops and
threads can share it.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import httpx

from toolbelt.adapters.connection import protocol
from toolbelt.core import caches, errors

# An exchange yields requests to send and pauses in seconds. It receives the response to a request, or its error.
Step = dict[str, Any] | float
Response = httpx.Response | httpx.RequestError | None
Exchange = Generator[Step, Response, protocol.Document]

# How many surfaces to cache for conditional requests.
MAX_CACHED = 64


class Wire:
    """The exchanges of one connection."""

    def __init__(self, address: str, agent: str, pauses: Sequence[float]) -> None:
        self._agent, self._pauses = agent, tuple(pauses)
        self._address = f"{address.rstrip('/')}/api/v1/agents/{urllib.parse.quote(agent, safe='')}"
        self._cache: caches.LruCache[tuple[protocol.Run, str | None], tuple[str, protocol.Document]] = (
            caches.LruCache(MAX_CACHED)
        )

    def fetch_surface(
        self, run: protocol.Run, message: str | None, form: str | None, declared: Mapping[str, str] | None
    ) -> Exchange:
        """Request a surface, and repeat the request if no server accepted it."""
        # The steps of a run repeat the same request, so an unchanged surface need not be sent again.
        cached = None if message is not None or declared is not None else self._cache.get((run, form))
        request = self._surface_request(run, message, form, declared, cached[0] if cached else None)
        response = yield request
        for pause in self._pauses:
            if not _is_unsent(response):
                break
            yield pause
            response = yield request
        if not isinstance(response, httpx.Response):
            raise protocol.Unreachable(
                f"Toolbelt could not be reached at {self._address}: {_describe(response)}."
            ) from response
        if response.status_code == httpx.codes.NOT_MODIFIED and cached:
            return cached[1]
        document = self._read(response, form)
        if request["method"] == "GET" and "ETag" in response.headers:
            self._cache.put((run, form), (response.headers["ETag"], document))
        return document

    def call_tool(self, run: protocol.Run, tool: str, arguments: Any) -> Exchange:
        """Call a tool. Never repeated, because a failed request may have run."""
        try:
            json.dumps(arguments, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise errors.Invalid([errors.Problem(path="arguments", message=f"not JSON: {error}")]) from error
        body = {**run.document(), "tool": tool, "arguments": arguments}
        response = yield {"method": "POST", "url": self._address + "/calls", "json": body}
        if isinstance(response, httpx.Response):
            return self._read(response, None)
        ran = "It was not sent." if _is_unsent(response) else "It may have run."
        raise protocol.Unreachable(f"The call of {tool} failed: {_describe(response)}. {ran}") from response

    def _surface_request(
        self,
        run: protocol.Run,
        message: str | None,
        form: str | None,
        declared: Mapping[str, str] | None,
        etag: str | None,
    ) -> dict[str, Any]:
        url, params = self._address + "/surface", {**run.document(), **({"format": form} if form else {})}
        if message is not None or declared is not None:
            more = {"message": message, "declared": declared}
            body = params | {key: value for key, value in more.items() if value is not None}
            return {"method": "POST", "url": url, "json": body}
        headers = {"If-None-Match": etag} if etag else {}
        return {"method": "GET", "url": url, "params": params, "headers": headers}

    def _read(self, response: httpx.Response, form: str | None) -> protocol.Document:
        """Return the document in a response, or raise the problem in it as an error."""
        try:
            document = response.json()
        except ValueError:
            document = None
        if not isinstance(document, dict) or not (response.is_success or "code" in document):
            status = f"{self._address} returned {response.status_code}, but not a response of Toolbelt"
            raise protocol.Unreachable(f"{status}. Check the address, and that Toolbelt is running.")
        if response.is_success:
            return document
        detail, code = str(document.get("detail", "")), str(document["code"])
        problems = [
            errors.Problem(path=str(error.get("path", "")), message=str(error.get("message", "")))
            for error in document.get("errors", ())
        ] or [errors.Problem(path="", message=detail)]
        match code:
            case "invalid":
                raise errors.Invalid(problems)
            case "provider-limit":
                raise errors.ProviderLimit(form or "", problems)
            case "not-found":
                raise errors.NotFound("agent", self._agent, document.get("nearest", ()))
            case "unauthenticated" | "forbidden":
                raise protocol.NotAllowed(detail, code)
            case "too-many-requests":
                wait = response.headers.get("Retry-After", "")
                raise protocol.TooMany(detail, int(wait) if wait.isdecimal() else None)
        raise protocol.Unanswered(detail, code)


def _is_unsent(response: Response) -> bool:
    """Return whether no server accepted the request."""
    if isinstance(response, httpx.Response):
        return response.status_code == httpx.codes.SERVICE_UNAVAILABLE
    return isinstance(response, httpx.ConnectError | httpx.ConnectTimeout)


def _describe(response: Response) -> str:
    return str(response).rstrip(".") or type(response).__name__
