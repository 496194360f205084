"""How is a caller of the API told what went wrong? As problem details (RFC 9457), with a code that is stable.

:data:`CODES` is all of them, with their statuses. Core errors are turned into them here and nowhere else, so that
one error reads the same wherever it comes from; and whatever else answers under ``/api/`` with an error, such as
Django's own pages, leaves as a problem, too.
"""

from __future__ import annotations

import http
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ninja
import structlog
from django.core import exceptions
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import errors as ninja_errors

from toolbelt.api import schemas
from toolbelt.core import errors, schema
from toolbelt.runtime import access, calls

MEDIA_TYPE = "application/problem+json"
WHERE = "/api/"
# Each problem's type leads to the words about it, on the page that documents the API.
TYPES = "/api/v1/docs#problem-"

CODES: Mapping[str, tuple[int, str]] = {
    "bad-request": (400, "The request makes no sense"),
    "not-json": (400, "The body is not JSON"),
    "too-deep": (400, "The body is nested too deeply"),
    "unauthenticated": (401, "A token is needed"),
    "forbidden": (403, "The token does not open this"),
    "not-found": (404, "There is nothing of this name"),
    "method-not-allowed": (405, "This is not done here"),
    "request-timeout": (408, "The request took too long to arrive"),
    "refused": (409, "A rule forbids it"),
    "stale": (409, "It was changed meanwhile"),
    "confirmation-required": (409, "It has to be confirmed"),
    "provider-limit": (409, "The provider does not take it"),
    "length-required": (411, "The length of the body is needed"),
    "precondition-failed": (412, "It is not what you saw"),
    "too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The body is of another kind"),
    "invalid": (422, "It is not sound"),
    "too-many-requests": (429, "Too many requests"),
    "internal": (500, "The fault is ours"),
    "overloaded": (503, "The server is busy"),
    "database-unavailable": (503, "The database is not available"),
    "database-busy": (503, "The database is busy"),
    "database-read-only": (503, "The database is read-only"),
    "storage-full": (507, "The disk is full"),
}
_OF_THE_CONTENT = frozenset({"Content-Type", "Content-Length", "Content-Language"})
# The first code of each status says no more than the status does.
_BY_STATUS = {status: code for code, (status, _) in reversed(list(CODES.items()))}


class HttpProblem(Exception):
    """An answer that says what is wrong: one of :data:`CODES`, ``errors`` with their paths, and what else is known."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[errors.Problem] = (),
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        self.code, self.detail, self.errors, self.more = code, detail, tuple(errors), more
        self.status, self.title = CODES[code]
        self.headers = dict(headers or {})
        super().__init__(detail)

    def document(self) -> dict[str, Any]:
        """Give the problem as it stands on the wire."""
        found: dict[str, Any] = {
            "type": TYPES + self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **self.more,
        }
        if self.errors:
            found["errors"] = [{"path": one.path, "message": one.message} for one in self.errors]
        return found


def of(error: errors.ToolbeltError) -> HttpProblem:
    """Give the problem that a core error is."""
    match error:
        case errors.Invalid():
            return HttpProblem(error.code, str(error), errors=error.problems)
        case errors.NotFound():
            return HttpProblem("not-found", str(error), nearest=list(error.nearest))
        case errors.Stale():
            return HttpProblem("stale", str(error), was=error.was, now=error.now, wanted=error.wanted)
        case errors.ConfirmationRequired():
            reasons, differences = list(error.reasons), error.differences
            return HttpProblem("confirmation-required", str(error), reasons=reasons, differences=differences)
        case errors.Unavailable():
            return HttpProblem(error.code, str(error), headers={"Retry-After": str(error.retry_after)})
    return HttpProblem("refused", str(error))


def answer(problem: HttpProblem) -> HttpResponse:
    """Put a problem on the wire."""
    text = schema.canonical(problem.document())
    return HttpResponse(text, status=problem.status, content_type=MEDIA_TYPE, headers=problem.headers)


def answers(*statuses: int) -> dict[int, type[schemas.Problem]]:
    """Document the problems of an operation that not every operation has: 409, 412."""
    return dict.fromkeys(statuses, schemas.Problem)


def connect(api: ninja.NinjaAPI) -> None:
    """Let every error in an operation of this API leave as a problem."""
    api.add_exception_handler(HttpProblem, lambda _, problem: answer(_one(problem)))
    api.add_exception_handler(errors.ToolbeltError, lambda _, error: answer(of(_one(error))))
    api.add_exception_handler(ninja_errors.ValidationError, lambda _, error: answer(_misshapen(_one(error))))
    api.add_exception_handler(ninja_errors.HttpError, lambda _, error: answer(_of_ninja(_one(error))))
    api.add_exception_handler(
        exceptions.RequestDataTooBig,
        lambda _, error: answer(HttpProblem("too-large", f"{error} Send less at a time.")),
    )
    # Whatever else breaks is Django's to log and to answer; it comes by below.
    api.add_exception_handler(Exception, _raised)


def everywhere(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Let every error under the API's address leave as a problem, whoever answered it (a middleware)."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if response.status_code < 400 or not request.path_info.startswith(WHERE):
            return response
        if response.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        unavailable = getattr(response, "unavailable", None)
        if unavailable is not None and _is_call_by_known(request):
            return HttpResponse(
                schema.canonical(calls.unchecked().document()), content_type="application/json"
            )
        problem = _of_status(response.status_code, request) if unavailable is None else of(unavailable)
        told = answer(problem)
        for name, value in response.items():
            if name not in _OF_THE_CONTENT:
                told.headers.setdefault(name, value)
        return told

    return middleware


def _is_call_by_known(request: HttpRequest) -> bool:
    """Return whether this is a call of a tool by somebody whose token was valid lately.

    Their model can read a refusal, and would make nothing of a problem.
    """
    match = request.resolver_match
    if match is None or match.url_name != "call_tool":
        return False
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    bearer = access.last_known(token.strip()) if scheme.lower() == "bearer" else None
    return bearer is not None and bearer.agent in ("", match.kwargs.get("agent"))


def _of_status(status: int, request: HttpRequest) -> HttpProblem:
    code = _BY_STATUS.get(status, "internal" if status >= 500 else "bad-request")
    match code:
        case "not-found":
            return HttpProblem(code, f"There is nothing at {request.path_info}.", nearest=[])
        case "method-not-allowed":
            return HttpProblem(code, f"{request.path_info} has no {request.method}; Allow says what it has.")
        case "internal":
            asked = structlog.contextvars.get_contextvars().get("request_id", "")
            return HttpProblem(code, "It was logged for an operator.", request_id=str(asked))
    return HttpProblem(code, http.HTTPStatus(CODES[code][0]).description or CODES[code][1])


def _misshapen(error: ninja_errors.ValidationError) -> HttpProblem:
    """Say what does not have the shape that the operation asks for, where, and where it was looked for."""
    found = [
        errors.Problem(path=_path(one["loc"]), message=_sentence(str(one["msg"]))) for one in error.errors
    ]
    return HttpProblem("invalid", "; ".join(map(str, found)), errors=found)


def _path(place: Sequence[str | int]) -> str:
    """Write a place as all paths are written: from the body on, from the query on."""
    steps = place[2:] if place[0] == "body" or place[1:2] == ("asked",) else place[1:]
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _sentence(message: str) -> str:
    text = message.removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _of_ninja(error: ninja_errors.HttpError) -> HttpProblem:
    if isinstance(error.__cause__, HttpProblem):
        # What the parser of bodies says, ninja wraps in words of its own.
        return error.__cause__
    return HttpProblem(_BY_STATUS.get(error.status_code, "bad-request"), str(error))


def _raised(request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
    raise error


def _one(error: Any) -> Any:
    return error
