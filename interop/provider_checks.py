"""The checks of agents on Claude's models, whose provider refuses what the documentation says that it refuses.

A part provides a fixture ``converse``: a function that lets an agent of its framework, on the model with this name and
the provider at this address, answer messages one after the other, in one conversation. It takes the next message only
when the one before is answered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable

import kit
import pytest

from tests.providers import anthropic_server, models

Converse = Callable[[str, str, Iterable[str]], None]
# The directive requires a call. The model answers, calls a tool, or calls tools in two steps.
MESSAGES = [
    "Hello.",
    "Please add.",
    'call desk__add {"a": 2, "b": 3, "because": "add"}',
    'call search_tools {"query": "add"} then call desk__add {"a": 2, "b": 3} + list_toolkits {}',
    "Goodbye.",
]
STEPS = 1 + 1 + 2 + 3 + 1


CHECKING = [name for name, line in models.CLAUDE.items() if line.checks]


@pytest.mark.parametrize("model", CHECKING)
def test_no_flip_and_no_load_breaks_a_conversation(model: str, converse: Converse) -> None:
    def messages() -> Generator[str]:
        yield "Hello."
        with kit.switched("arithmetic", False):
            yield 'insist desk__add {"a": 2, "b": 3} then load_tools {"toolkit": "desk_notes"}'
            yield "Please add."
        yield 'call desk__add {"a": 2, "b": 3} + list_toolkits {}'
        with kit.switched("desk_notes", False):
            yield "Goodbye."

    # The switches are restored whatever happens.
    with anthropic_server.Server() as server, contextlib.closing(messages()) as said:
        converse(model, server.address, said)
    assert [entry["message"] for entry in server.log if entry["status"] != 200] == []
    assert len(server.log) == 1 + 3 + 1 + 2 + 1
    assert len({entry["head"] for entry in server.log}) == 1
    assert "desk__add" in str(server.log[1]["messages"][-1])


@pytest.mark.parametrize("model", models.CLAUDE)
def test_a_directive_breaks_no_conversation(model: str, converse: Converse) -> None:
    with anthropic_server.Server() as server:
        converse(model, server.address, MESSAGES)
    assert [entry["message"] for entry in server.log if entry["status"] != 200] == []
    assert len(server.log) == STEPS
    assert len({entry["head"] for entry in server.log}) == 1
    assert "Call one of these tools in your next step" in str(server.log[1]["messages"])
