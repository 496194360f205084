"""The requests, responses and retries of the HTTP connections: everything except sending.

A request that no server accepted is repeated, except a call: a call is never repeated, because it may have run. A
report is also repeated if its response was lost, because only the first report of a call counts. An exchange is a
generator that yields requests and pauses and receives responses, so that event loops and threads can share it.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Generator, Mapping, Sequence
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
# A call that people have to approve is answered once they have, or after 20 seconds (RFC 7240).
WAITING = {"Prefer": "wait=20"}
# The longest error that the API accepts.
MAX_ERROR_LENGTH = 2000


class Wire:
    """The exchanges of one connection."""

    def __init__(self, address: str, agent: str, pauses: Sequence[float]) -> None:
        self._agent, self._pauses = agent, tuple(pauses)
        self._root = f"{address.rstrip('/')}/api/v1"
        self._address = f"{self._root}/agents/{urllib.parse.quote(agent, safe='')}"
        self._cache: caches.LruCache[tuple[protocol.Run, str | None], tuple[str, protocol.Document]] = (
            caches.LruCache(MAX_CACHED)
        )

    def fetch_surface(
        self,
        run: protocol.Run,
        message: str | None,
        form: str | None,
        declared: Mapping[str, str] | None,
        model: str | None = None,
        conversation: Mapping[str, Any] | None = None,
    ) -> Exchange:
        """Request a surface, and repeat the request if no server accepted it."""
        more = {"message": message, "declared": declared, "conversation": conversation}
        body = {name: value for name, value in more.items() if value is not None}
        if model is not None and (message is not None or conversation is not None):
            # Otherwise, no answer depends on the model.
            body["model"] = model
        # The steps of a run repeat the same request, so an unchanged surface need not be sent again.
        cached = None if body else self._cache.get((run, form))
        request = self._surface_request(run, form, body, cached[0] if cached else None)
        response = yield from self._send(request)
        if response.status_code == httpx.codes.NOT_MODIFIED and cached:
            return cached[1]
        document = self._read(response, form)
        if request["method"] == "GET" and "ETag" in response.headers:
            self._cache.put((run, form), (response.headers["ETag"], document))
        return document

    def call_tool(self, run: protocol.Run, tool: str, arguments: Any, conversation: str = "") -> Exchange:
        """Call a tool. Never repeated, because a failed request may have run."""
        body = {**run.document(), "tool": tool, "arguments": _json(arguments)}
        if conversation:
            body["conversation"] = {"token": conversation}
        url = self._address + "/calls"
        response = yield {"method": "POST", "url": url, "json": body, "headers": WAITING}
        if isinstance(response, httpx.Response):
            return self._read(response, None)
        ran = "It was not sent." if _is_unsent(response) else "It may have run."
        raise protocol.Unreachable(f"The call of {tool} failed: {_describe(response)}. {ran}") from response

    def check(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        version: str = "",
        conversation: str = "",
        ask: bool = False,
    ) -> Exchange:
        """Check what would happen to a call, and repeat the request if no server accepted it."""
        body: dict[str, Any] = {**run.document(), "tool": tool, "arguments": _json(arguments)}
        body |= {"version": version} if version else {}
        body |= {"conversation": {"token": conversation}} if conversation else {}
        body |= {"ask": True} if ask else {}
        response = yield from self._send(
            {"method": "POST", "url": self._address + "/calls/check", "json": body}
        )
        return self._read(response, None)

    def declare(self, plugin: str, tools: Sequence[Mapping[str, Any]]) -> Exchange:
        """Declare the program's own tools, and repeat the request if no server accepted it."""
        url = f"{self._root}/client-plugins/{urllib.parse.quote(plugin, safe='')}/tools"
        response = yield from self._send({"method": "PUT", "url": url, "json": {"tools": list(tools)}})
        return self._read(response, None, ("client plugin", plugin))

    def admit(
        self, run: protocol.Run, tool: str, arguments: Any, version: str = "", conversation: str = ""
    ) -> Exchange:
        """Have a call admitted, and repeat the request if no server accepted it."""
        call = {"tool": tool, "arguments": _json(arguments)} | ({"version": version} if version else {})
        body: dict[str, Any] = {**run.document(), "calls": [call]}
        if conversation:
            body["conversation"] = {"token": conversation}
        url = self._address + "/calls/admit"
        response = yield from self._send({"method": "POST", "url": url, "json": body, "headers": WAITING})
        [answer] = self._read(response, None)["calls"]
        admission: protocol.Document = answer
        return admission

    def report(self, call_id: str, outcome: protocol.Outcome) -> Exchange:
        """Report the outcome of a call, and repeat the report if its response was lost."""
        url = f"{self._address}/calls/{urllib.parse.quote(call_id, safe='')}/outcome"
        request = {"method": "POST", "url": url, "json": _report(outcome)}
        response = yield from self._send(request, lambda response: not isinstance(response, httpx.Response))
        if response.status_code != httpx.codes.CONFLICT:
            self._check(response, ("admitted call", call_id))
        return {}

    def record(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        outcome: protocol.Outcome,
        seconds_ago: float,
    ) -> Exchange:
        """Record a call that ran without an admission, and repeat the request if no server accepted it."""
        call = {"tool": tool, "arguments": _json(arguments), "seconds_ago": round(seconds_ago)}
        body = {**run.document(), "calls": [{**call, **_report(outcome)}]}
        response = yield from self._send(
            {"method": "POST", "url": self._address + "/calls/record", "json": body}
        )
        self._check(response)
        return {}

    def _send(
        self,
        request: dict[str, Any],
        may_repeat: Callable[[Response], bool] = lambda response: False,
    ) -> Generator[Step, Response, httpx.Response]:
        """Send a request, repeatedly while no server accepts it. Raise Unreachable if there is no response."""
        response = yield request
        for pause in self._pauses:
            if not (_is_unsent(response) or may_repeat(response)):
                break
            yield pause
            response = yield request
        if isinstance(response, httpx.Response):
            return response
        raise protocol.Unreachable(
            f"Toolbelt could not be reached at {self._address}: {_describe(response)}."
        ) from response

    def _surface_request(
        self,
        run: protocol.Run,
        form: str | None,
        body: Mapping[str, Any],
        etag: str | None,
    ) -> dict[str, Any]:
        url, params = self._address + "/surface", {**run.document(), **({"format": form} if form else {})}
        if body:
            return {"method": "POST", "url": url, "json": {**params, **body}}
        headers = {"If-None-Match": etag} if etag else {}
        return {"method": "GET", "url": url, "params": params, "headers": headers}

    def _check(self, response: httpx.Response, subject: tuple[str, str] | None = None) -> None:
        """Raise the problem in a response that has no document otherwise."""
        if response.status_code != httpx.codes.NO_CONTENT:
            self._read(response, None, subject)

    def _read(
        self, response: httpx.Response, form: str | None, subject: tuple[str, str] | None = None
    ) -> protocol.Document:
        """Return the document in a response, or raise the problem in it as an error.

        ``subject`` is what does not exist if the response is 404: its kind and name. Default: the agent.
        """
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
                missing = errors.NotFound(*(subject or ("agent", self._agent)), document.get("nearest", ()))
                if subject is None and detail:
                    # It also names the other reasons: the agent is archived, or the token is another agent's.
                    missing.args = (detail,)
                raise missing
            case "unauthenticated" | "forbidden":
                raise protocol.NotAllowed(detail, code)
            case "too-many-requests":
                wait = response.headers.get("Retry-After", "")
                raise protocol.TooMany(detail, int(wait) if wait.isdecimal() else None)
        if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            raise protocol.Unreachable(detail, code)
        raise protocol.Unanswered(detail, code)


def _json(arguments: Any) -> Any:
    """Return the arguments. Raise errors.Invalid if they are not JSON."""
    try:
        json.dumps(arguments, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.Invalid([errors.Problem(path="arguments", message=f"not JSON: {error}")]) from error
    return arguments


def _report(outcome: protocol.Outcome) -> dict[str, Any]:
    return {
        "outcome": outcome.code,
        "error": outcome.error[:MAX_ERROR_LENGTH],
        "duration_ms": outcome.duration_ms,
        "result_bytes": outcome.result_bytes,
    }


def _is_unsent(response: Response) -> bool:
    """Return whether no server accepted the request."""
    if isinstance(response, httpx.Response):
        return response.status_code == httpx.codes.SERVICE_UNAVAILABLE
    return isinstance(response, httpx.ConnectError | httpx.ConnectTimeout)


def _describe(response: Response) -> str:
    return str(response).rstrip(".") or type(response).__name__
