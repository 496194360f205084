"""No operation fails on any input, and every response matches the OpenAPI document.

Schemathesis makes requests up from the OpenAPI document, sound and unsound ones, the same ones each time.
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
_WITH_OTHERS = "an entry is judged with all others: what it names has to exist, and its own name may be taken"
# Operations that may refuse a request that fits its schema with 422, and the rule that no schema can say.
REFUSED_THOUGH_SOUND = {
    "create_category": _WITH_OTHERS,
    **{
        f"{verb}_{kind}": _WITH_OTHERS
        for verb in ("create", "change")
        for kind in ("agent", "loadout", "plugin", "sub_app", "tool", "toolkit")
    },
    "import_belt": _WITH_OTHERS,
    "issue_token": "a token is of one agent or of one operator, and its scope is only an operator's",
}
# Names that are there, so that something is found now and then.
THERE = {
    "agent": ["ada", "bob"],
    "tool": ["clock", "kb__find"],
    "toolkit": ["reading"],
    "session": ["s1"],
    "loadout": ["night"],
    "plugin": ["kb"],
}


def document() -> dict[str, Any]:
    """Return the OpenAPI document, with names in it to choose from."""
    made: dict[str, Any] = json.loads(json.dumps(application.api.get_openapi_schema()))
    for _, _, described in application.described_operations(made):
        for parameter in described["parameters"]:
            if parameter["in"] == "path" and parameter["name"] in THERE:
                anything = copy.deepcopy(parameter["schema"])
                parameter["schema"] = {"anyOf": [{"enum": THERE[parameter["name"]]}, anything]}
    return made


def operations() -> Iterator[Any]:
    schema = schemathesis.openapi.from_dict(document())
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        yield found.ok()


@pytest.fixture
def served() -> Iterator[Any]:
    """Serve the application within the test's transaction: the end of a request closes no connection."""
    for signal in (signals.request_started, signals.request_finished):
        signal.disconnect(db.close_old_connections)
    yield wsgi.get_wsgi_application()
    for signal in (signals.request_started, signals.request_finished):
        signal.connect(db.close_old_connections)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["sound", "unsound"])
@pytest.mark.parametrize("whose", ["agent", "operator"])
def test_nothing_breaks_and_nothing_undocumented_is_answered(
    stored: None, served: Any, subtests: pytest.Subtests, settings: Any, whose: str, mode: GenerationMode
) -> None:
    settings.TOOLBELT_API_PER_MINUTE = 0
    text = {
        "agent": lambda: tokens.issue(SETUP, agent="ada").text,
        "operator": lambda: of_operator("olga", superuser=True),
    }[whose]()
    for operation in operations():
        name = operation.definition.raw["operationId"]
        if whose == "agent" and name not in AGENTS_OWN:
            continue  # it is refused whatever is sent (see test_authorization)
        with subtests.test(name):
            send(operation, mode, served, {"Authorization": f"Bearer {text}"})
    assert models.Agent.objects.exists()


def test_each_reason_is_of_an_operation() -> None:
    names = {operation.definition.raw["operationId"] for operation in operations()}
    assert set(REFUSED_THOUGH_SOUND) <= names


def has_printable_ids(case: Any) -> bool:
    """Return whether its ids are printable, as the schema says: the generator makes unassigned characters, too."""
    body = case.body if isinstance(case.body, dict) else {}
    parts = (case.path_parameters or {}, case.query or {}, body)
    ids = [part.get(name) for part in parts for name in ("session", "request_id")]
    return all(urllib.parse.unquote(one).isprintable() for one in ids if isinstance(one, str))


def send(operation: Any, mode: GenerationMode, served: Any, headers: dict[str, str]) -> None:
    """Send the operation some requests; the same ones each time."""

    @hypothesis.settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def sent(case: Any) -> None:
        hypothesis.assume(mode is GenerationMode.NEGATIVE or has_printable_ids(case))
        answer = case.call(app=served, headers=headers)
        name = operation.definition.raw["operationId"]
        skipped = [checks.positive_data_acceptance] if name in REFUSED_THOUGH_SOUND else []
        case.validate_response(answer, checks=CHECKS, excluded_checks=skipped)

    try:
        sent()
    except hypothesis.errors.Unsatisfiable:
        # There is no unsound request where nothing is asked for.
        assert mode is GenerationMode.NEGATIVE
