"""Tests that a tool of a fixture with an invalid schema is left out and reported, and that all else works."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core import checks
from django.core.management import call_command

from toolbelt import models, testing
from toolbelt.control.config import belts
from toolbelt.core import tool_lists
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import calls, surfaces
from toolbelt.runtime.surfaces import rendering
from toolbelt.store import snapshots

pytestmark = pytest.mark.django_db

BROKEN = """
- model: toolbelt.tool
  fields: {key: broken_schema, description: B., input_schema: {type: strin}, default_on: true, tokens: 9}
"""
PROBLEM = "its input schema is invalid: a tool takes named arguments: the schema's type must be 'object', not 'strin'"


@pytest.fixture(autouse=True)
def loaded(db: None, tmp_path: Path) -> None:
    belts.import_(
        testing.OPERATOR, {"tools": [{"key": "clock", "default_on": True}], "agents": [{"key": "ada"}]}
    )
    fixture = tmp_path / "broken.yaml"
    fixture.write_text(BROKEN)
    call_command("loaddata", str(fixture), verbosity=0)
    snapshots.forget()


def warnings() -> list[str]:
    found = checks.run_checks(tags=["database"], databases=["default"])
    return [str(message.msg) for message in found if message.id == "toolbelt.W011"]


@pytest.mark.parametrize("form", rendering.FORMATS)
def test_every_format_has_the_other_tools(form: str) -> None:
    rendered = str(rendering.render(surfaces.ask("ada"), form))
    assert "clock" in rendered
    assert "broken_schema" not in rendered


def test_the_surface_warns_and_lists_and_calls_leave_the_tool_out() -> None:
    answer = surfaces.ask("ada")
    assert [(warning.code, warning.message) for warning in answer.warnings] == [
        ("schema-invalid", f"broken_schema is left out: {PROBLEM}. Correct the schema.")
    ]
    assert "broken_schema" not in [tool.name for tool in tool_lists.of(answer, "dispatch").tools]
    refused = calls.admit(RequestKey("ada"), "broken_schema", {})
    assert refused.document()["code"] == "tool-unavailable"  # type: ignore[union-attr]


def test_the_system_check_reports_the_tool_until_its_schema_is_corrected() -> None:
    assert warnings() == [f"The tool 'broken_schema' is unavailable: {PROBLEM}."]
    tool = models.Tool.objects.get(key="broken_schema")
    tool.input_schema = {"type": "object"}
    tool.save(update_fields=["input_schema"])
    assert warnings() == []
    assert models.Tool.objects.get(key="broken_schema").schema_problem == ""


def test_an_import_corrects_the_tool() -> None:
    belts.import_(
        testing.OPERATOR.replace(confirm=True),
        {"tools": [{"key": "broken_schema", "input_schema": {"type": "object"}, "default_on": True}]},
    )
    assert [tool.name for tool in surfaces.ask("ada").tools] == ["broken_schema", "clock"]
