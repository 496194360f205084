"""Tests of the API reference: the OpenAPI document, the HTML page and the page in docs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import models as logins
from django.test import Client
from ninja.openapi.schema import OpenAPISchema

from scripts import http_api
from tests.docs import pages
from toolbelt.api import application, problems, reference


@pytest.fixture
def olive(db: None) -> Client:
    client = Client()
    client.force_login(logins.User.objects.create_user("olive"))
    return client


def test_the_generated_reference_page_is_current():
    written = http_api.PAGE.read_text(encoding="utf-8")
    assert written == http_api.page(), "write it again: python -m scripts.http_api"


def test_every_operation_is_on_the_page(olive):
    page = olive.get("/api/v1/docs")
    assert page.status_code == 200
    document = application.api.get_openapi_schema(path_prefix=reference.PREFIX)
    for _, path, described in application.described_operations(document):
        assert f'id="{described["operationId"]}"' in page.text
        assert path in page.text
    for code in problems.CODES:
        assert f'id="problem-{code}"' in page.text


def test_code_in_a_description_is_rendered_as_code(olive):
    page = olive.get("/api/v1/docs").text
    assert "<p>Call a tool or a meta-tool: <code>list_toolkits</code>, <code>load_tools</code>" in page
    assert "`" not in page


def test_each_object_is_described(olive):
    page = olive.get("/api/v1/docs").text
    described = [shown for shown in reference.read().objects if shown.description]
    assert len(described) > 10
    for shown in described:
        assert re.search(rf'id="object-{shown.name}">\s*<h3><code>{shown.name}</code></h3>\s*<p>', page), (
            shown.name
        )


def test_the_page_loads_nothing_from_other_sites(olive):
    page = olive.get("/api/v1/docs")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert re.findall(r'(?:src|href)="(?!/|#)[^"]+"', page.text) == []
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=", page.text)


def test_ids_on_the_page_are_unique(olive):
    ids = re.findall(r'\sid="([^"]+)"', olive.get("/api/v1/docs").text)
    assert sorted(set(ids)) == sorted(ids)


def test_the_openapi_document_requires_authentication(olive, ada, anonymous):
    assert olive.get("/api/v1/openapi.json").json()["openapi"].startswith("3.1")
    assert ada.get("/openapi.json").json() == olive.get("/api/v1/openapi.json").json()
    answer = anonymous.get("/openapi.json")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_the_reference_page_requires_authentication(ada, db):
    assert ada.get("/docs").status_code == 200
    answer = Client().get("/api/v1/docs")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/login/?next=/api/v1/docs")
    assert Client(headers={"Authorization": "Bearer x"}).get("/api/v1/docs").status_code == 401


def test_schema_names_are_unique_in_the_document(monkeypatch):
    known: dict[str, set[Any]] = {}

    def add(self: Any, definitions: dict[str, Any]) -> None:
        for name, schema in definitions.items():
            # The request and response schemas of a class may differ in their required keys.
            signature = (schema.get("description"), tuple(schema.get("properties", ())))
            known.setdefault(name, set()).add(signature)
        self.schemas.update(definitions)

    monkeypatch.setattr(OpenAPISchema, "add_schema_definitions", add)
    monkeypatch.setattr(application.api, "_documents", {})
    shown = application.api.get_openapi_schema(path_prefix="")["components"]["schemas"]
    assert shown.keys() <= known.keys()
    assert {name: known[name] for name in shown if len(known[name]) > 1} == {}


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"type": "string"}, "string"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Tool"}}, "array of Tool"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "map of string to boolean"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"enum": ["a", "b"], "type": "string"}, "one of a, b"),
        ({"enum": ["", "a"], "type": "string"}, "one of a or an empty string"),
        (
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "array of (string or null)",
        ),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, "[string, integer]"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"description": "Whatever."}, "any"),
        ({}, "none"),
    ],
)
def test_a_schemas_type_is_described_in_words(schema, name):
    assert reference.type_name(schema) == name


def test_every_problem_code_is_in_the_reference_of_errors():
    page = (pages.REFERENCE / "errors.md").read_text(encoding="utf-8")
    section = page.partition("## Problems of the HTTP API")[2].partition("\n## ")[0]
    for code, (status, _) in problems.CODES.items():
        assert f"| `{code}` | {status} |" in section
