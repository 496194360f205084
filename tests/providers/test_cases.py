"""Tests that none of the changes that break conversations today breaks one that Toolbelt appends to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests import fast_fixtures
from tests.providers import cases, chat_server, gemini_server, models, soak

pytestmark = pytest.mark.slow

MODELS = [
    *(("anthropic", model) for model in models.CLAUDE),
    *(("openai_responses", model) for model in models.OPENAI),
    *(("openai_chat", model) for model in chat_server.MODELS),
    *(("gemini", model) for model in sorted(gemini_server.MODELS)),
]
# Models that refuse their own thinking after a change of what stood before it.
CHECKING = [model for model, line in models.CLAUDE.items() if line.checks]


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, soak.Service]]:
    with soak.serving() as services:
        yield services


@pytest.fixture(scope="module", autouse=True)
def demo(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Store the demo once for all tests of this module."""
    with fast_fixtures.shared(django_db_blocker):
        fast_fixtures.demo()
        yield


def run(name: str, service: soak.Service, model: str, way: cases.Way = "appended") -> cases.Outcome:
    return cases.run(cases.CASES[name], cases.connection(), service, model, way, cases.apply)


@pytest.mark.django_db
@pytest.mark.parametrize("name", cases.CASES)
@pytest.mark.parametrize(("form", "model"), MODELS)
def test_every_model_line_continues_with_one_prefix(
    form: str, model: str, name: str, services: dict[str, Any]
) -> None:
    outcome = run(name, services[form], model)
    assert outcome.refused == ""
    assert len(outcome.entries) == len(outcome.written) >= 1
    assert len({entry["head"] for entry in outcome.entries}) == 1
    # The first request is read whole; what follows is read from the cache, but for what is new.
    assert outcome.written[0] == outcome.bytes[0] > 40_000
    assert all(written < 20_000 for written in outcome.written[1:])


@pytest.mark.django_db
@pytest.mark.parametrize("model", CHECKING)
def test_a_request_that_is_rewritten_after_a_flip_is_refused(model: str, services: dict[str, Any]) -> None:
    outcome = run("an operator turns a toolkit off", services["anthropic"], model, "rewritten")
    assert "bound to a different conversation" in outcome.refused


@pytest.mark.django_db
def test_a_request_that_is_rewritten_is_read_again_as_a_whole(services: dict[str, Any]) -> None:
    outcome = run("an operator turns a toolkit off", services["openai_responses"], "gpt-5.6", "rewritten")
    assert outcome.refused == ""
    assert outcome.written == outcome.bytes
