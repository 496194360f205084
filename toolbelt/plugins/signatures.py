"""Which arguments does a typed function take, and what does it answer? Its schemas, and the way through them.

Pydantic makes both schemas from the hints. A parameter of type ``RuntimeAPI`` is handed the plugin's runtime, and
is no argument.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pydantic
import pydantic_core
from pydantic import fields, json_schema

from toolbelt.plugins import contract

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What is known of a function. ``model`` has a field for each argument, ``fields`` says which."""

    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    model: type[pydantic.BaseModel]
    fields: Mapping[str, str]
    runtime: tuple[str, ...]
    answer: pydantic.TypeAdapter[Any]

    def arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Make of a call's arguments what the hints say. Raises ToolError where one cannot be that."""
        try:
            given = self.model.model_validate(dict(args))
        except pydantic.ValidationError as error:
            wrong = (f"{_path(one['loc'])}: {one['msg']}" for one in error.errors())
            raise contract.ToolError(f"The arguments do not fit: {'; '.join(wrong)}.") from None
        return {name: getattr(given, at) for name, at in self.fields.items()}

    def said(self, answer: Any) -> Any:
        """Say what the function answered in JSON's values. Raises where a promised schema is not kept."""
        must_fit = self.output_schema is not None
        return self.answer.dump_python(
            answer, mode="json", by_alias=True, warnings="error" if must_fit else False
        )


def of(function: Callable[..., Any], described: Mapping[str, str]) -> Signature:
    """Read the function's hints; ``described`` are its docstring's words on parameters. Raises TypeError."""
    says = f"{function.__module__}.{function.__qualname__}"
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise TypeError(f"{says}: its type hints cannot be read: {error}.") from error
    taken: dict[str, Any] = {}
    at: dict[str, str] = {}
    runtime = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in _NAMED:
            raise TypeError(f"{says}: a tool takes named arguments, and {parameter} cannot be one.")
        if name not in hints:
            raise TypeError(f"{says}: {name!r} has no type, and the schema comes from types.")
        if isinstance(parameter.default, fields.FieldInfo):
            raise TypeError(
                f"{says}: write {name}: Annotated[..., Field(...)], with a plain default or none."
            )
        if hints[name] is contract.RuntimeAPI:
            runtime.append(name)
            continue
        # Fields have names of their own: a parameter may be called as something that a model has already.
        at[name] = f"argument_{len(at)}"
        taken[at[name]] = (hints[name], _field(name, parameter, hints[name], described))
    try:
        model = pydantic.create_model(
            function.__name__, __config__=pydantic.ConfigDict(extra="forbid"), **taken
        )
        input_schema = _bare(model.model_json_schema(schema_generator=_Schema))
        answer: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hints.get("return", Any))
        output_schema = _bare(answer.json_schema(schema_generator=_Schema, mode="serialization"))
    except (pydantic.errors.PydanticUserError, pydantic_core.SchemaError) as error:
        raise TypeError(f"{says}: no schema can be made of its types: {error}") from error
    return Signature(
        input_schema=input_schema,
        # A mapping with any keys promises nothing worth a schema; what is no object cannot be promised.
        output_schema=output_schema if output_schema.get("properties") else None,
        model=model,
        fields=at,
        runtime=tuple(runtime),
        answer=answer,
    )


class _Schema(json_schema.GenerateJsonSchema):
    """Schemas without the titles that pydantic makes of names: they say nothing new, and cost tokens."""

    # A default that JSON cannot say stays out of the schema; the function has it all the same.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _field(name: str, parameter: inspect.Parameter, hint: Any, described: Mapping[str, str]) -> Any:
    """Give the field of a parameter; what an ``Annotated`` hint says comes before the docstring and the name."""
    stated = fields.FieldInfo.from_annotation(hint)
    more: dict[str, Any] = {}
    if stated.alias is None:
        more["alias"] = name
    if stated.description is None and described.get(name):
        more["description"] = described[name]
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return pydantic.Field(default, **more)


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    for one in (schema, *schema.get("$defs", {}).values()):
        one.pop("title", None)
    return schema


def _path(parts: tuple[int | str, ...]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
