"""The types of the fields of entries, the reading of what is written, and the words for what does not fit.

Pydantic validates the models; this module is the only one that words its errors. Reading never fails: what does not fit
is reported and then read as if it were not given, so that rules can check the rest. Lists keep their positions, with
None for an item that does not fit, so that a rule can report the index. None always means "not given".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import pydantic
from pydantic_core import ErrorDetails, PydanticCustomError, PydanticKnownError

from toolbelt.core import grants, strict_json
from toolbelt.core.belts import findings

# The largest number that every database stores in a plain integer column.
MAX_INTEGER = 2**31 - 1

_LENIENT = "lenient"
_T = TypeVar("_T")


def _gap(value: Any, handler: pydantic.ValidatorFunctionWrapHandler, info: pydantic.ValidationInfo) -> Any:
    """Accept None in place of what did not fit, once that has been reported."""
    return None if value is None and info.context == _LENIENT else handler(value)


def _in_order(value: Any) -> Any:
    """Refuse what has no order, such as a set, or can be read only once, such as a generator."""
    if not isinstance(value, list | tuple | str | bytes | Mapping) and isinstance(value, Iterable):
        raise PydanticKnownError("list_type")
    return value


def _storable(text: str) -> str:
    if not strict_json.is_storable(text):
        raise PydanticCustomError("string_unicode", "unstorable")
    return text


def _stated(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "blank")
    return text


def _moment(written: object) -> str:
    moment = grants.parse_time(written)
    if moment is None:
        raise PydanticCustomError("unfit", "a time with its zone, such as '2026-11-22T14:05:00Z'")
    return grants.format_time(moment)


def _json(written: object) -> dict[str, Any]:
    if not isinstance(written, Mapping):
        raise PydanticCustomError("unfit", "a mapping")
    try:
        return dict(strict_json.copied(written))
    except ValueError as error:
        raise PydanticCustomError("json", "{why}", {"why": str(error)}) from error


# Text that can be stored and sent: without NUL and without lone surrogates.
Text = Annotated[str, pydantic.AfterValidator(_storable)]
# Text that must be given.
Name = Annotated[Text, pydantic.AfterValidator(_stated), pydantic.WrapValidator(_gap)]
Whole = Annotated[int, pydantic.Field(ge=0, le=MAX_INTEGER)]
# A time in ISO 8601 with a time zone; read as UTC, to the second.
Moment = Annotated[
    str,
    pydantic.PlainValidator(_moment),
    pydantic.WrapValidator(_gap),
    pydantic.WithJsonSchema({"type": "string", "format": "date-time"}),
]
# A JSON object. It is read as a copy, so that later changes by its writer do not affect the value.
Json = Annotated[dict[str, Any], pydantic.PlainValidator(_json), pydantic.WithJsonSchema({"type": "object"})]
# One of a few words, among them "": empty text means "not given".
Word = Annotated[_T, pydantic.AfterValidator(lambda word: word or None)]
# The value of a pair may be null.
Pairs = Annotated[
    dict[Annotated[str, pydantic.AfterValidator(_stated)], _T | None], pydantic.Field(strict=False)
]
if TYPE_CHECKING:
    Each = list[_T | None]
else:
    Each = Annotated[
        list[Annotated[_T, pydantic.WrapValidator(_gap)]],
        pydantic.Field(strict=False),
        # Not a set, whose order changes, or a generator, which can be read once.
        pydantic.BeforeValidator(_in_order),
    ]


class Fields(pydantic.BaseModel):
    """A mapping with fixed fields, in the order in which they are written."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid", frozen=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _given(cls, written: Any, info: pydantic.ValidationInfo) -> Any:
        if not isinstance(written, Mapping):
            return written
        known = cls.model_fields
        # The value of an unknown field is not looked at: it becomes the names of those that there are.
        given = {
            name if isinstance(name, str) else repr(name): value if name in known else tuple(known)
            for name, value in written.items()
            if value is not None or name not in known
        }
        if info.context == _LENIENT:
            return {**{name: None for name, field in known.items() if field.is_required()}, **given}
        return given

    def given(self) -> dict[str, Any]:
        """Return the fields that are given."""
        return {name: value for name, value in self if value is not None}


class ToolUse(Fields):
    """A tool, with the options that are passed to it."""

    tool: Name
    options: Json | None = None


class _OrKey:
    """A tool's key alone is accepted as well."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: pydantic.GetJsonSchemaHandler) -> Any:
        return {"anyOf": [{"type": "string"}, handler(core_schema)]}


def _use(written: Any, handler: pydantic.ValidatorFunctionWrapHandler) -> Any:
    if isinstance(written, str):
        return ToolUse.model_construct(tool=_storable(written))
    if not isinstance(written, Mapping):
        raise PydanticCustomError("unfit", "a tool's key, or a mapping of tool and options")
    return handler(written)


# A tool's key, or ``{tool, options}``; read as the latter.
Use = Annotated[ToolUse, pydantic.WrapValidator(_use), _OrKey()]


def read(declared: Any, written: Any) -> tuple[Any, list[findings.Finding]]:
    """Return what fits of what is written, and a finding for each part that does not.

    ``declared`` is a model or another type. What is returned is None if nothing fits.
    """
    try:
        return _adapter(declared).validate_python(written), []
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False)
    found, misfits = [], []
    places: dict[int, _Keys] = {}
    for detail in details:
        steps, at = _place(written, detail["loc"], places)
        found.append(_finding(detail, steps, at))
        misfits.append(steps)
    rest = _without(written, misfits)
    if rest is not None:
        rest = _adapter(declared).validate_python(rest, context=_LENIENT, extra="ignore")
    return rest, found


@functools.cache
def _adapter(declared: Any) -> pydantic.TypeAdapter[Any]:
    is_model = isinstance(declared, type) and issubclass(declared, Fields)
    return pydantic.TypeAdapter(declared, config=None if is_model else pydantic.ConfigDict(strict=True))


# The keys of a mapping, each with its part of a path; by what pydantic calls them.
_Keys = Mapping[Any, tuple[Any, int | str]]


def _place(
    written: Any, location: Sequence[int | str], places: dict[int, _Keys]
) -> tuple[list[Any], findings.Path]:
    """Return the keys and positions that lead to what an error is about, and its path.

    The last of them may be a key that is missing. ``places`` caches the keys of mappings.
    """
    steps: list[Any] = []
    path: list[int | str] = []
    for step in location:
        if isinstance(written, Mapping):
            if id(written) not in places:
                places[id(written)] = {
                    name: (key, findings.part(key, position))
                    for position, key in enumerate(written)
                    for name in (repr(key), key)
                }
            key, part = places[id(written)].get(step, (step, step))
        elif isinstance(written, list | tuple):
            key = part = step
        else:
            break
        if key == "[key]" and key not in written:
            break
        steps.append(key)
        path.append(part)
        written = written.get(key) if isinstance(written, Mapping) else written[key]
    return steps, tuple(path)


def _without(written: Any, misfits: Sequence[Sequence[Any]]) -> Any:
    """Return what is written without what does not fit: None is in its place, and keys that are no names are gone."""
    if any(not steps for steps in misfits):
        return None
    inside: dict[Any, list[Sequence[Any]]] = {}
    for first, *steps in misfits:
        inside.setdefault(first, []).append(steps)
    items = written.items() if isinstance(written, Mapping) else enumerate(written)
    rest = {key: _without(item, inside[key]) if key in inside else item for key, item in items}
    if isinstance(written, Mapping):
        return {key: item for key, item in rest.items() if isinstance(key, str) and key.strip()}
    return list(rest.values())


def _finding(detail: ErrorDetails, steps: Sequence[Any], at: findings.Path) -> findings.Finding:
    """Return the finding for an error of pydantic's, in the words of entries."""
    given = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            message = f"There is no field {shown(steps[-1])} here."
            return findings.Finding(at, message, str(steps[-1]), given, f"There are {', '.join(given)}.")
        case "string_unicode":
            return findings.Finding(at, f"{_name(at)} contains a character that cannot be stored: remove it.")
        case "json":
            return findings.Finding(at, f"{_name(at)} cannot be written as JSON: {detail['msg']}.")
        case "literal_error":
            words = [word for word in re.findall("'([^']*)'", detail["ctx"]["expected"]) if word]
            finding = _unfit(at, f"{', '.join(words[:-1])} or {words[-1]}", given)
            return finding._replace(name=given, among=tuple(words)) if isinstance(given, str) else finding
    if detail["loc"][-1:] == ("[key]",) != tuple(steps[-1:]):
        return _unfit(at, "a key that is a name", given)
    if detail["type"] in ("missing", "blank"):
        return findings.Finding(at, f"{at[-1]!r} is required: it cannot be missing or blank.")
    return _unfit(at, _EXPECTED.get(detail["type"], detail["msg"]), given)


_WHOLE = f"a whole number from 0 to {MAX_INTEGER}"
_EXPECTED = {
    "string_type": "text",
    "bool_type": "true or false",
    **dict.fromkeys(("int_type", "greater_than_equal", "less_than_equal"), _WHOLE),
    "list_type": "a list",
    **dict.fromkeys(("dict_type", "model_type"), "a mapping"),
}


def _unfit(at: findings.Path, expected: str, value: object) -> findings.Finding:
    return findings.Finding(at, f"{_name(at)} must be {expected}, not {shown(value)}.")


def _name(at: findings.Path) -> str:
    """Return the words for a path in a sentence: its last key, followed by its indexes."""
    last = next((position for position in range(len(at) - 1, -1, -1) if isinstance(at[position], str)), None)
    if last is None:
        return "This"
    return repr(f"{at[last]}" + "".join(f"[{index}]" for index in at[last + 1 :]))


def shown(value: object) -> str:
    """Return a value in a sentence."""
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
