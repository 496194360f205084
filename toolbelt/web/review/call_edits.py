"""The form in which an operator replaces arguments of a call. What is not shown completely has no field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt import conf
from toolbelt.control.agents import call_approvals
from toolbelt.core import errors, schema, strict_json
from toolbelt.web.kit import texts
from toolbelt.web.review import asked_calls

MAX_ROWS = 12
_HEAD = re.compile(r"[/.]?([^/.\[]+)")


@dataclass(slots=True, kw_only=True)
class Field:
    """The field of one argument: a text, or JSON. ``key`` is the argument, ``name`` what the form calls it."""

    key: str
    name: str
    label: str
    value: Any
    typed: str
    is_text: bool
    problem: str = ""

    @property
    def rows(self) -> int:
        """Return how many lines the field shows; 1 is a field of one line."""
        lines = self.typed.count("\n") + 1
        return min(MAX_ROWS, max(lines, 1 + len(self.typed) // 80))

    def read(self) -> Any:
        """Return the typed value. Raise ValueError with what is wrong with it."""
        if self.is_text:
            return self.value if self.typed == _unified(self.value) else self.typed
        try:
            json.loads(self.typed)
            # It also refuses what parsers read differently.
            return strict_json.read_text(self.typed, conf.API_BODY_DEPTH)
        except json.JSONDecodeError as error:
            message = f"This is not JSON: line {error.lineno}, column {error.colno}: {error.msg}."
            raise ValueError(message) from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"This cannot be read: {error}") from error


class Form:
    """The fields of a call's arguments, with what was typed into them."""

    def __init__(self, detail: call_approvals.Detail, sent: Mapping[str, str] | None = None) -> None:
        self._approval = detail.approval
        self.shown = detail.approval.shown if sent is None else str(sent.get("shown", ""))
        self.fields = [*_fields(detail)]
        self.problem = ""
        for field in self.fields if sent is not None else ():
            field.typed = _unified(str(sent.get(field.name, field.typed))) if sent else field.typed

    @property
    def hidden(self) -> int:
        """Return how many arguments have no field."""
        return len(self._approval.arguments) - len(self.fields)

    def values(self) -> dict[str, Any]:
        """Return the arguments that differ from those of the call. Raise errors.Invalid."""
        found, problems = {}, []
        for field in self.fields:
            try:
                value = field.read()
            except ValueError as error:
                problems.append(errors.Problem(path=field.key, message=str(error)))
                continue
            called = self._approval.preview
            if field.key not in called or schema.comparable(called[field.key]) != schema.comparable(value):
                found[field.key] = value
        if problems:
            raise errors.Invalid(problems)
        return found

    def is_unchanged(self, edited: Mapping[str, Any]) -> bool:
        """Return whether these are the arguments that the page showed."""
        return schema.comparable(dict(edited)) == schema.comparable(dict(self._approval.edited))

    def show(self, error: errors.ToolbeltError) -> None:
        """Show each problem at its field, or above all fields."""
        by_key = {field.key: field for field in self.fields}
        for problem in error.problems:
            head = _HEAD.match(problem.path)
            field = by_key.get(problem.path) or by_key.get(head[1] if head else "")
            if field is None:
                self.problem = f"{self.problem} {problem}".strip()
            else:
                field.problem = f"{field.problem} {problem.message}".strip()


def _fields(detail: call_approvals.Detail) -> Iterator[Field]:
    for index, argument in enumerate(detail.arguments):
        if argument.is_hidden:
            continue
        typed = asked_calls.printed(argument.value)
        yield Field(
            key=argument.name,
            name=f"value-{index}",
            label=texts.visible(argument.name),
            value=argument.value,
            typed=_unified(typed),
            is_text=isinstance(argument.value, str) and typed == argument.value,
        )


def _unified(text: str) -> str:
    """Return a text with the line ends of a form; browsers send CR and LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
