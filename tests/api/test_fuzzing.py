"""Tests that no operation fails on any input, and that every response matches the OpenAPI document.

Schemathesis generates valid and invalid requests from the OpenAPI document, the same ones each time.
"""

from __future__ import annotations

import copy
import json
import urllib.parse
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from django import db
from django.core import signals, wsgi
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from tests.api.conftest import SETUP, of_operator
from tests.api.test_authorization import AGENTS_OWN
from toolbelt import models
from toolbelt.api import application
from toolbelt.control.people import tokens

EXAMPLES = 3
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.positive_data_acceptance,
]
_DEPENDS_ON_OTHERS = (
    "an entry is validated with all others: the names that it refers to must exist, and its own must be free"
)
# Operations that may refuse a request that matches the schema with 422, and the rule that no schema can express.
REFUSED_THOUGH_VALID = {
    "create_category": _DEPENDS_ON_OTHERS,
    **{
        f"{verb}_{kind}": _DEPENDS_ON_OTHERS
        for verb in ("create", "change")
        for kind in ("agent", "gate_rule", "loadout", "plugin", "sub_app", "tool", "toolkit")
    },
    "import_belt": _DEPENDS_ON_OTHERS,
    "prove_change": "one of a belt, an undo and a draft is proved, and an entry is validated with all others",
    "observe_draft": "an end is in the next 90 days",
    "schedule_draft": "a time is in the next 90 days",
    "create_draft": "either a belt or an undo is saved, and an entry is validated with all others",
    "propose_belt": "what is kept is named like an entry of a loadout",
    **dict.fromkeys(
        (
            *("flip_switch", "override_tool", "clear_switch", "clear_override"),
            *("put_tools_config", "change_tools_config", "undo_change"),
            *("approve_tools", "reject_tools", "decide_instructions"),
            *(
                f"remove_{kind}"
                for kind in ("agent", "category", "gate_rule", "loadout", "sub_app", "toolkit")
            ),
        ),
        "only a dry run is proved, or saved as a draft",
    ),
    "read_past_belt": "a moment is the number of a change, or a time in one of several forms",
    "issue_token": "a token belongs to one agent or one operator, and only an operator's token has a scope",
}
# Existing names, so that some requests find something.
EXISTING_NAMES = {
    "agent": ["ada", "bob"],
    "tool": ["clock", "kb__find"],
    "toolkit": ["reading"],
    "session": ["s1"],
    "loadout": ["night"],
    "plugin": ["kb"],
}


def document() -> dict[str, Any]:
    """Return the OpenAPI document, with existing names to choose from."""
    schema: dict[str, Any] = json.loads(json.dumps(application.api.get_openapi_schema()))
    for _, _, operation in application.described_operations(schema):
        for parameter in operation["parameters"]:
            if parameter["in"] == "path" and parameter["name"] in EXISTING_NAMES:
                any_value = copy.deepcopy(parameter["schema"])
                parameter["schema"] = {"anyOf": [{"enum": EXISTING_NAMES[parameter["name"]]}, any_value]}
    return schema


def operations() -> Iterator[Any]:
    schema = schemathesis.openapi.from_dict(document())
    for operation in schema.get_all_operations():
        assert isinstance(operation, Ok)
        yield operation.ok()


@pytest.fixture
def served() -> Iterator[Any]:
    """Yield the application, whose requests do not close the connection, and so the test's transaction."""
    for signal in (signals.request_started, signals.request_finished):
        signal.disconnect(db.close_old_connections)
    yield wsgi.get_wsgi_application()
    for signal in (signals.request_started, signals.request_finished):
        signal.connect(db.close_old_connections)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("token_of", ["agent", "operator"])
def test_every_operation_answers_generated_requests_as_documented(
    stored: None, served: Any, subtests: pytest.Subtests, settings: Any, token_of: str, mode: GenerationMode
) -> None:
    settings.TOOLBELT_API_PER_MINUTE = 0
    text = {
        "agent": lambda: tokens.issue(SETUP, agent="ada").text,
        "operator": lambda: of_operator("olga", superuser=True),
    }[token_of]()
    for operation in operations():
        name = operation.definition.raw["operationId"]
        if token_of == "agent" and name not in AGENTS_OWN:
            continue  # It is refused for any request (see test_authorization).
        with subtests.test(name):
            send(operation, mode, served, {"Authorization": f"Bearer {text}"})
    assert models.Agent.objects.exists()


def test_every_exception_names_an_existing_operation() -> None:
    names = {operation.definition.raw["operationId"] for operation in operations()}
    assert set(REFUSED_THOUGH_VALID) <= names


def has_printable_ids(case: Any) -> bool:
    """Return whether the ids are printable, as the schema requires: the generator also uses unassigned characters."""
    body = case.body if isinstance(case.body, dict) else {}
    parts = (case.path_parameters or {}, case.query or {}, body)
    ids = [part.get(name) for part in parts for name in ("session", "request_id")]
    return all(urllib.parse.unquote(value).isprintable() for value in ids if isinstance(value, str))


def send(operation: Any, mode: GenerationMode, served: Any, headers: dict[str, str]) -> None:
    """Send some generated requests to the operation, the same ones each time."""

    @hypothesis.settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def send_request(case: Any) -> None:
        hypothesis.assume(mode is GenerationMode.NEGATIVE or has_printable_ids(case))
        answer = case.call(app=served, headers=headers)
        name = operation.definition.raw["operationId"]
        skipped = [checks.positive_data_acceptance] if name in REFUSED_THOUGH_VALID else []
        case.validate_response(answer, checks=CHECKS, excluded_checks=skipped)

    try:
        send_request()
    except hypothesis.errors.Unsatisfiable:
        # There is no invalid request to an operation without parameters.
        assert mode is GenerationMode.NEGATIVE
