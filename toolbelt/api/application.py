"""What does the API consist of? Its routers, and the OpenAPI document that is made from them.

What every operation can answer because every operation asks for a token, reads its parameters and may be asked too
often is added to the document here, so that an operation names only what is its own.
"""

from __future__ import annotations

import http
from collections.abc import Iterator, Mapping
from typing import Any

import ninja
from django.contrib.auth import decorators
from django.urls import URLPattern, URLResolver
from ninja import operation as operations
from ninja.openapi.schema import OpenAPISchema

from toolbelt.api import (
    belt,
    bodies,
    calls,
    changes,
    entries,
    operators,
    problems,
    questions,
    reviews,
    schemas,
    sessions,
    switches,
    tokens,
    tools_config,
)

ROUTERS: tuple[ninja.Router, ...] = (
    questions.router,
    sessions.router,
    tools_config.router,
    switches.router,
    *entries.routers,
    operators.router,
    reviews.router,
    belt.router,
    changes.router,
    calls.router,
    tokens.router,
)

_SCHEMA = {"$ref": f"#/components/schemas/{schemas.Problem.__name__}"}
_ALWAYS = (401, 403, 429, 503, 507)
_WITH_PARAMETERS = (404, 422)
_WITH_BODY = (400, 411, 413, 415, 422)


class Application(ninja.NinjaAPI):
    """The API under ``/api/v1/``."""

    def get_openapi_operation_id(self, operation: operations.Operation) -> str:
        """Call an operation what its function is called."""
        return operation.view_func.__name__

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Give the OpenAPI document, with the problems that each operation may answer."""
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        document["components"]["schemas"].setdefault(
            schemas.Problem.__name__, schemas.Problem.model_json_schema(mode="serialization")
        )
        defined = document["components"]["schemas"][schemas.Problem.__name__]
        document["components"]["schemas"].update(defined.pop("$defs", {}))
        for _, _, described in described_operations(document):
            _add_problems(described)
        _forget_unused(document)
        return document

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        """Give the addresses. What asks for a login elsewhere asks for a token here."""
        found, app, namespace = super().urls
        for pattern in found:
            if isinstance(pattern, URLPattern):
                decorators.login_not_required(pattern.callback)
        return found, app, namespace


def described_operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Give each operation of an OpenAPI document: its method, its path, what is said of it."""
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            yield method.upper(), path, described


def _forget_unused(document: dict[str, Any]) -> None:
    """Leave schemas out that nothing refers to, such as that of a query, whose parameters stand one by one."""
    schemas_ = document["components"]["schemas"]
    used: set[str] = set()
    unread: list[Any] = [document["paths"]]
    while unread:
        match unread.pop():
            case {"$ref": str(ref)} if (name := ref.rpartition("/")[2]) not in used:
                used.add(name)
                unread.append(schemas_[name])
            case dict() as inner:
                unread.extend(inner.values())
            case list() as inner:
                unread.extend(inner)
    document["components"]["schemas"] = {name: schemas_[name] for name in sorted(used)}


def _add_problems(described: dict[str, Any]) -> None:
    statuses = [*_ALWAYS]
    statuses += _WITH_PARAMETERS if described["parameters"] else ()
    statuses += _WITH_BODY if "requestBody" in described else ()
    responses: dict[Any, Any] = described["responses"]
    for status in statuses:
        responses.setdefault(status, {"description": http.HTTPStatus(status).phrase})
    for status, response in responses.items():
        if int(status) >= 400:
            response["content"] = {problems.MEDIA_TYPE: {"schema": _SCHEMA}}
    described["responses"] = {str(status): responses[status] for status in sorted(responses, key=int)}


api = Application(
    title="Toolbelt",
    version="1",
    description="The switchboard in front of agents' tools: ask for a surface, call, configure.",
    urls_namespace="api",
    docs_url=None,
    openapi_url=None,
    parser=bodies.Parser(),
)
problems.connect(api)
for _router in ROUTERS:
    api.add_router("", _router)
