"""Tests that prepared answers have the bytes of the canonical document, and when they may be shared."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import schema, tool_deltas
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime.surfaces import prepared_answers, request_contexts, surface_template
from toolbelt.store import state_probe

TEXT = st.text(max_size=20)
KEYS = ("active_tools", "agent", "declared", "directive", "policy", "provider", "tool_choice", "warnings")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3)
)
DECLARED = st.dictionaries(TEXT, TEXT, max_size=4)


@given(
    values=st.fixed_dictionaries(dict.fromkeys(KEYS, VALUES) | {"declared": DECLARED}),
    request_id=st.none() | TEXT,
    session=st.none() | TEXT,
    revision=st.integers(min_value=0),
    given_before=st.none() | DECLARED,
)
def test_a_rendered_template_equals_the_canonical_document(
    values, request_id, session, revision, given_before
):
    other = {**values, "delta": None, "request_id": "x", "revision": 1, "session": None}
    delta = None
    if given_before is not None:
        delta = tool_deltas.difference(values["declared"], given_before).document()
    expected_document = {
        **values,
        "delta": delta,
        "request_id": request_id,
        "revision": revision,
        "session": session,
    }
    joined = surface_template.split(other, '"etag"').render(
        request_id=request_id, revision=revision, session=session, declared=given_before
    )
    assert joined == schema.canonical(expected_document).encode()


def test_a_document_with_an_unexpected_key_among_the_ids_is_refused():
    document = dict.fromkeys(("agent", "delta", "policy", "request_id", "revision", "session", "tools"))
    with pytest.raises(ValueError, match="not a surface document"):
        surface_template.split({**document, "declared": {}, "scope": 1}, "")


@pytest.mark.parametrize(
    ("state", "request_id", "expected"),
    [
        (None, "r1", False),
        ('{"changes":[{"request_id":"r1"}]}', "r1", True),
        ('{"changes":[{"request_id":"r1"}]}', "r2", False),
        ('{"changes":[{"request_id":"r1"}]}', None, False),
        ('{"changes":[{"request_id":"\\u00e9"}]}', "é", True),
        ('{"changes":[{"request_id":"a\\"b"}]}', 'a"b', True),
    ],
)
def test_a_request_that_the_session_state_names_is_recognized(state, request_id, expected):
    look = state_probe.ProbedState(1, 1, "a", 1, "c", "", state)
    assert request_contexts.may_be_named(request_id, look) is expected


class UnreachableProbe:
    """A probe that cannot read the database."""

    async def read(self, prefix: str, agent: str, session: str | None) -> Any:
        raise state_probe.UnreachableError("it is locked")

    async def close(self) -> None:
        """Do nothing."""


def test_a_failing_probe_is_logged_once(caplog):
    async def main() -> None:
        answers = prepared_answers.PreparedAnswers(UnreachableProbe())
        for _ in range(3):
            question = prepared_answers.SurfaceRequest(RequestKey("ada"), "tb_" + "0" * 57)
            assert await answers.ask(question, lambda bearer: True) is None

    asyncio.run(main())
    assert caplog.text.count("it is locked") == 1
