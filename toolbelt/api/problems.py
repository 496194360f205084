"""The API's errors: problem details (RFC 9457) with stable codes.

:data:`CODES` lists all codes with their statuses. Core errors are converted here and nowhere else, so that an error
reads the same wherever it is raised. All other error responses under ``/api/``, such as Django's own, become problem
details too.
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
from toolbelt.runtime import calls, credentials

MEDIA_TYPE = "application/problem+json"
API_PREFIX = "/api/"
# The type of a problem is the address of its description on the page that documents the API.
TYPE_PREFIX = "/api/v1/docs#problem-"

CODES: Mapping[str, tuple[int, str]] = {
    "bad-request": (400, "The request is malformed"),
    "not-json": (400, "The body is not JSON"),
    "too-deep": (400, "The body is nested too deeply"),
    "unauthenticated": (401, "A valid token is required"),
    "forbidden": (403, "The token does not permit this"),
    "not-found": (404, "Not found"),
    "method-not-allowed": (405, "The method is not supported here"),
    "request-timeout": (408, "The request took too long to arrive"),
    "refused": (409, "A rule forbids this"),
    "stale": (409, "The value has changed"),
    "confirmation-required": (409, "Confirmation is required"),
    "provider-limit": (409, "The provider does not accept the surface"),
    "length-required": (411, "The Content-Length header is required"),
    "precondition-failed": (412, "If-Match does not match the current version"),
    "too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The body has an unsupported media type"),
    "invalid": (422, "The input is not valid"),
    "too-many-requests": (429, "Too many requests"),
    "internal": (500, "Something went wrong on our side"),
    "overloaded": (503, "The server is busy"),
    "database-unavailable": (503, "The database is not available"),
    "database-busy": (503, "The database is busy"),
    "database-read-only": (503, "The database is read-only"),
    "storage-full": (507, "The disk is full"),
}
_CONTENT_HEADERS = frozenset({"Content-Type", "Content-Length", "Content-Language"})
# The first code of each status is the general one.
_BY_STATUS = {status: code for code, (status, _) in reversed(list(CODES.items()))}


class HttpProblem(Exception):
    """An error response: one of :data:`CODES`, the ``errors`` with their paths, and further fields of the problem."""

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
        """Return the problem as a JSON object."""
        fields: dict[str, Any] = {
            "type": TYPE_PREFIX + self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **self.more,
        }
        if self.errors:
            fields["errors"] = [{"path": error.path, "message": error.message} for error in self.errors]
        return fields


def from_error(error: errors.ToolbeltError) -> HttpProblem:
    """Return the problem for a core error."""
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
        case errors.NotStored():
            headers = {"Retry-After": str(error.retry_after)}
            return HttpProblem(error.code, str(error), headers=headers, stored=False)
        case errors.Unavailable():
            return HttpProblem(error.code, str(error), headers={"Retry-After": str(error.retry_after)})
    return HttpProblem("refused", str(error))


def to_response(problem: HttpProblem) -> HttpResponse:
    """Return a problem as a response."""
    text = schema.canonical(problem.document())
    return HttpResponse(text, status=problem.status, content_type=MEDIA_TYPE, headers=problem.headers)


def documented(*statuses: int) -> dict[int, type[schemas.Problem]]:
    """Return the documentation of problems that only some operations return: 409, 412."""
    return dict.fromkeys(statuses, schemas.Problem)


def register_handlers(api: ninja.NinjaAPI) -> None:
    """Convert every error in an operation of this API to a problem."""
    api.add_exception_handler(HttpProblem, lambda _, problem: to_response(_untyped(problem)))
    api.add_exception_handler(errors.ToolbeltError, lambda _, error: to_response(from_error(_untyped(error))))
    api.add_exception_handler(
        ninja_errors.ValidationError, lambda _, error: to_response(_from_validation_error(_untyped(error)))
    )
    api.add_exception_handler(
        ninja_errors.HttpError, lambda _, error: to_response(_from_ninja_error(_untyped(error)))
    )
    api.add_exception_handler(
        exceptions.RequestDataTooBig,
        lambda _, error: to_response(HttpProblem("too-large", f"{error} Send less at a time.")),
    )
    # Django logs and answers other exceptions; the middleware below converts its response.
    api.add_exception_handler(Exception, _reraise)


def problem_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return a middleware that converts every error response under the API's address to a problem."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if response.status_code < 400 or not request.path_info.startswith(API_PREFIX):
            return response
        if response.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        unavailable = getattr(response, "unavailable", None)
        if unavailable is not None and _is_recent_callers_call(request):
            return HttpResponse(
                schema.canonical(calls.unchecked().document()), content_type="application/json"
            )
        problem = (
            _from_status(response.status_code, request) if unavailable is None else from_error(unavailable)
        )
        problem_response = to_response(problem)
        for name, value in response.items():
            if name not in _CONTENT_HEADERS:
                problem_response.headers.setdefault(name, value)
        return problem_response

    return middleware


def _is_recent_callers_call(request: HttpRequest) -> bool:
    """Return whether this is a tool call by a client whose token was valid recently.

    Its model can read a refused call, but would not understand a problem.
    """
    match = request.resolver_match
    if match is None or match.url_name != "call_tool":
        return False
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    bearer = credentials.last_known(token.strip()) if scheme.lower() == "bearer" else None
    return bearer is not None and bearer.agent in ("", match.kwargs.get("agent"))


def _from_status(status: int, request: HttpRequest) -> HttpProblem:
    code = _BY_STATUS.get(status, "internal" if status >= 500 else "bad-request")
    match code:
        case "not-found":
            return HttpProblem(code, f"There is no operation at {request.path_info}.", nearest=[])
        case "method-not-allowed":
            return HttpProblem(
                code,
                f"{request.path_info} does not support {request.method}. The Allow header lists the methods"
                " that it supports.",
            )
        case "internal":
            request_id = structlog.contextvars.get_contextvars().get("request_id", "")
            return HttpProblem(
                code,
                "The error was logged. Give the operator the request_id.",
                request_id=str(request_id),
            )
    return HttpProblem(code, http.HTTPStatus(CODES[code][0]).description or CODES[code][1])


def _from_validation_error(error: ninja_errors.ValidationError) -> HttpProblem:
    """Return the problem that lists all invalid parameters and fields, by path."""
    validation_problems = [
        errors.Problem(path=_path(detail["loc"]), message=_sentence(str(detail["msg"])))
        for detail in error.errors
    ]
    return HttpProblem("invalid", "; ".join(map(str, validation_problems)), errors=validation_problems)


def _path(location: Sequence[str | int]) -> str:
    """Return a location in the form of all other paths, relative to the body or the query."""
    steps = location[2:] if location[0] == "body" or location[1:2] == ("query",) else location[1:]
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _sentence(message: str) -> str:
    text = message.removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _from_ninja_error(error: ninja_errors.HttpError) -> HttpProblem:
    if isinstance(error.__cause__, HttpProblem):
        # Ninja wraps the problems that the body parser raises.
        return error.__cause__
    return HttpProblem(_BY_STATUS.get(error.status_code, "bad-request"), str(error))


def _reraise(request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
    raise error


def _untyped(error: Any) -> Any:
    return error
