"""Tests that functions which cannot become tools are refused by name when the plugin is created."""

from __future__ import annotations

import pydantic
import pytest

from toolbelt.plugins import functions


class Opaque: ...


def untyped(query): ...


def starred(*names: str) -> None: ...


def open_ended(**more: str) -> None: ...


def positional(query: str, /) -> None: ...


def opaque(what: Opaque) -> None: ...


def unresolved(what: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821


def with_field(limit: int = pydantic.Field(10)) -> None: ...


def answers_opaque() -> Opaque:
    return Opaque()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (untyped, "'query' has no type"),
        (starred, "takes named arguments"),
        (open_ended, "takes named arguments"),
        (positional, "takes named arguments"),
        (opaque, "no schema can be made"),
        (answers_opaque, "no schema can be made"),
        (unresolved, "its type hints cannot be read: name 'Missing'"),
        (with_field, "write limit: Annotated"),
    ],
)
def test_a_function_that_cannot_become_a_tool_is_refused_by_name(function, message):
    with pytest.raises(TypeError, match=message) as raised:
        functions.FunctionPlugin(name="knowledge", namespace="kb", functions=[function])
    assert function.__qualname__ in str(raised.value)
