"""The API's routers, and the OpenAPI document that is generated from them.

The problems that every operation can return, such as 401 and 429, are added to the document here, so that an operation
documents only its own.
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
    agent_endpoints,
    alerts,
    belt,
    bodies,
    call_approvals,
    call_records,
    changes,
    client_calls,
    client_plugins,
    drafts,
    entries,
    instructions,
    operators,
    problems,
    proofs,
    proposals,
    purges,
    reviews,
    schemas,
    session_endpoints,
    switches,
    tokens,
    tools_config,
    usage,
)

ROUTERS: tuple[ninja.Router, ...] = (
    agent_endpoints.router,
    client_calls.router,
    call_approvals.router,
    session_endpoints.router,
    tools_config.router,
    switches.router,
    *entries.routers,
    purges.router,
    operators.router,
    reviews.router,
    instructions.router,
    client_plugins.router,
    belt.router,
    changes.router,
    proofs.router,
    drafts.router,
    proposals.router,
    call_records.router,
    usage.router,
    alerts.router,
    tokens.router,
)

_SCHEMA = {"$ref": f"#/components/schemas/{schemas.Problem.__name__}"}
_ALWAYS = (401, 403, 429, 503, 507)
_WITH_PARAMETERS = (404, 422)
_WITH_BODY = (400, 411, 413, 415, 422)
_PATH_PARAMETERS = {
    "agent": "The agent's key.",
    "plugin": "The plugin's name.",
    "toolkit": "The toolkit's key.",
    "tool": "The tool's key.",
    "session": "The session's id.",
    "name": "The entry's name or key.",
    "approval": "The approval's id.",
    "call_id": "The id that the call was admitted with.",
    "change": "The change's id.",
    "draft": "The draft's key.",
    "prefix": "The token's prefix.",
}


class Application(ninja.NinjaAPI):
    """The API under ``/api/v1/``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._documents: dict[str | None, OpenAPISchema] = {}

    def get_openapi_operation_id(self, operation: operations.Operation) -> str:
        """Return the name of the operation's function."""
        return operation.view_func.__name__

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Return the OpenAPI document, including the problems that each operation may return.

        It is made once for each prefix, which takes a quarter of a second, so callers must not change it.
        """
        if (cached := self._documents.get(path_prefix)) is not None:
            return cached
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        document["components"]["schemas"].setdefault(
            schemas.Problem.__name__, schemas.Problem.model_json_schema(mode="serialization")
        )
        defined = document["components"]["schemas"][schemas.Problem.__name__]
        document["components"]["schemas"].update(defined.pop("$defs", {}))
        for _, _, operation in described_operations(document):
            _add_problems(operation)
            for parameter in operation["parameters"]:
                if parameter["in"] == "path":
                    parameter["description"] = _PATH_PARAMETERS[parameter["name"]]
        _remove_unused_schemas(document)
        self._documents[path_prefix] = document
        return document

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        """Return the URL patterns, exempt from the login requirement: these views require a token instead."""
        patterns, app, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                decorators.login_not_required(pattern.callback)
        return patterns, app, namespace


def described_operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each operation of an OpenAPI document: its method, its path and its description."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _remove_unused_schemas(document: dict[str, Any]) -> None:
    """Remove schemas that nothing refers to, such as those of queries, whose parameters are listed individually."""
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


def _add_problems(operation: dict[str, Any]) -> None:
    statuses = [*_ALWAYS]
    statuses += _WITH_PARAMETERS if operation["parameters"] else ()
    statuses += _WITH_BODY if "requestBody" in operation else ()
    responses: dict[Any, Any] = operation["responses"]
    for status in statuses:
        responses.setdefault(status, {"description": http.HTTPStatus(status).phrase})
    for status, response in responses.items():
        if int(status) >= 400:
            response["content"] = {problems.MEDIA_TYPE: {"schema": _SCHEMA}}
    operation["responses"] = {str(status): responses[status] for status in sorted(responses, key=int)}


api = Application(
    title="Toolbelt",
    version="1",
    description="Retrieve agents' surfaces, call tools, and configure what each agent may use.",
    urls_namespace="api",
    docs_url=None,
    openapi_url=None,
    parser=bodies.Parser(),
)
problems.register_handlers(api)
for _router in ROUTERS:
    api.add_router("", _router)
