"""What fits where? The shapes that entries are made of: text, yes or no, lists, mappings, JSON.

A shape answers twice. ``problems`` says what does not fit; ``read`` gives what does, so that a sound value is
read whole and of any other as much as can be understood. None is always "not given". Lists keep their
positions when they are read, with None for an item that does not fit: a rule can still say which one it means.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolbelt.core import grants
from toolbelt.core.belts import findings

# Deep enough for any real schema (21 is the deepest of 484 that were looked at), shallow enough to walk safely.
DEEPEST = 64
# What every database holds in a plain integer column.
LARGEST = 2**31 - 1
# In bits. Python itself refuses to write numbers of more than 4300 digits.
LONGEST_NUMBER = 1024


class Shape(Protocol):
    """One kind of value: what is wrong with a value as this, and what can be read of it."""

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]: ...

    def read(self, value: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Text:
    """Text that can be stored and sent: without NUL, and without halves of surrogate pairs."""

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if not isinstance(value, str):
            yield _unfit(at, "text", value)
        elif not _is_storable(value):
            yield findings.Found(at, f"{_name(at)} holds a character that cannot be stored: take it out.")

    def read(self, value: Any) -> str | None:
        return value if isinstance(value, str) and _is_storable(value) else None


@dataclass(frozen=True, slots=True)
class YesNo:
    """True or false, and nothing that merely looks like it."""

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if not isinstance(value, bool):
            yield _unfit(at, "true or false", value)

    def read(self, value: Any) -> bool | None:
        return value if isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from 0 up; true and false are not numbers here."""

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if self.read(value) is None:
            yield _unfit(at, f"a whole number from 0 to {LARGEST}", value)

    def read(self, value: Any) -> int | None:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return value if is_number and 0 <= value <= LARGEST else None


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment in ISO 8601 with its zone; read as its text in UTC, to the second."""

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if self.read(value) is None:
            yield _unfit(at, "a moment with its zone, such as '2026-11-22T14:05:00Z'", value)

    def read(self, value: Any) -> str | None:
        moment = grants.moment(value)
        return None if moment is None else grants.written(moment)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words; the empty text is not given."""

    words: tuple[str, ...]

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if value != "" and self.read(value) is None:
            found = _unfit(at, f"{', '.join(self.words[:-1])} or {self.words[-1]}", value)
            yield found._replace(name=value, among=self.words) if isinstance(value, str) else found

    def read(self, value: Any) -> str | None:
        return value if isinstance(value, str) and value in self.words else None


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON object. It is read as a copy of its own: nothing that its writer does later reaches the value."""

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if not isinstance(value, Mapping):
            yield _unfit(at, "a mapping", value)
            return
        try:
            _copied(value, 0)
        except ValueError as error:
            yield findings.Found(at, f"{_name(at)} cannot be written as JSON: {error}.")

    def read(self, value: Any) -> dict[str, Any] | None:
        try:
            return dict(_copied(value, 0)) if isinstance(value, Mapping) else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Each:
    """A list, every item of one shape."""

    item: Shape

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if not isinstance(value, (list, tuple)):
            yield _unfit(at, "a list", value)
            return
        for position, item in enumerate(value):
            yield from self.item.problems(item, (*at, position))

    def read(self, value: Any) -> list[Any] | None:
        return [self.item.read(item) for item in value] if isinstance(value, (list, tuple)) else None


@dataclass(frozen=True, slots=True)
class Pairs:
    """A mapping whose keys are free; None is a value that is not given."""

    value: Shape

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if not isinstance(value, Mapping):
            yield _unfit(at, "a mapping", value)
            return
        for position, (key, one) in enumerate(value.items()):
            place = (*at, findings.part(key, position))
            if isinstance(place[-1], int):
                yield _unfit(place, "a key that is a name", key)
            if one is not None:
                yield from self.value.problems(one, place)

    def read(self, value: Any) -> dict[str, Any] | None:
        """Give the pairs with a proper key; the value is None where it is not given or does not fit."""
        if not isinstance(value, Mapping):
            return None
        return {
            key: self.value.read(one) for key, one in value.items() if isinstance(findings.part(key, 0), str)
        }


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping whose keys are known, in the order in which they are written; ``required`` ones must be given."""

    fields: Mapping[str, Shape]
    required: tuple[str, ...] = ()

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if not isinstance(value, Mapping):
            yield _unfit(at, "a mapping", value)
            return
        for position, (key, one) in enumerate(value.items()):
            place = (*at, findings.part(key, position))
            shape = self.fields.get(key) if isinstance(key, str) else None
            if shape is None:
                message, fields = f"There is no field {_shown(key)} here.", tuple(self.fields)
                yield findings.Found(place, message, str(key), fields, f"There are {', '.join(fields)}.")
            elif one is not None:
                yield from shape.problems(one, place)
        for key in self.required:
            one = value.get(key)
            if one is None or (isinstance(one, str) and not one.strip()):
                yield findings.Found((*at, key), f"{key!r} is required: it cannot be missing or blank.")

    def read(self, value: Any) -> dict[str, Any] | None:
        """Give the fields that are given and fit."""
        if not isinstance(value, Mapping):
            return None
        read = {
            key: shape.read(value.get(key))
            for key, shape in self.fields.items()
            if value.get(key) is not None
        }
        return {key: one for key, one in read.items() if one is not None}


@dataclass(frozen=True, slots=True)
class Use:
    """A tool's key, or ``{tool, options}``; read as the latter."""

    def problems(self, value: Any, at: findings.Place) -> Iterator[findings.Found]:
        if isinstance(value, (str, Mapping)):
            yield from (Text() if isinstance(value, str) else _USE).problems(value, at)
        else:
            yield _unfit(at, "a tool's key, or a mapping of tool and options", value)

    def read(self, value: Any) -> dict[str, Any] | None:
        read = _USE.read({"tool": value} if isinstance(value, str) else value)
        return read if read and "tool" in read else None


_USE = Fields({"tool": Text(), "options": Json()}, required=("tool",))


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _copied(value: Any, depth: int) -> Any:
    """Copy what JSON can say; ValueError says what it cannot."""
    if depth > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")
    match value:
        case Mapping():
            if not all(isinstance(key, str) and _is_storable(key) for key in value):
                raise ValueError("a key in it is not text that can be stored")
            return {key: _copied(one, depth + 1) for key, one in value.items()}
        case list() | tuple():
            return [_copied(one, depth + 1) for one in value]
        case str() if not _is_storable(value):
            raise ValueError("a text in it cannot be stored")
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is not a number in JSON")
        case int() if value.bit_length() > LONGEST_NUMBER:
            raise ValueError("a number in it is too large to be written")
        case None | str() | bool() | int() | float():
            return value
    raise ValueError(f"{_shown(value)} has no form in JSON")


def _unfit(at: findings.Place, wanted: str, value: object) -> findings.Found:
    return findings.Found(at, f"{_name(at)} must be {wanted}, not {_shown(value)}.")


def _name(at: findings.Place) -> str:
    """Name a place in a sentence: by its last key, with the indexes behind it."""
    last = next((place for place in range(len(at) - 1, -1, -1) if isinstance(at[place], str)), None)
    if last is None:
        return "This"
    return repr(f"{at[last]}" + "".join(f"[{index}]" for index in at[last + 1 :]))


def _shown(value: object) -> str:
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str() if len(value) > 60:
            return repr(value[:60] + "…")
        case str() | float():
            return repr(value)
        case int():
            return str(value) if abs(value) < 10**20 else "a very large number"
    return f"a {type(value).__name__}"
