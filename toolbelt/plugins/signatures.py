"""The schemas of a typed function's arguments and result, and their conversion from and to JSON.

Pydantic derives both schemas from the type hints. A parameter of type ``RuntimeAPI`` receives the plugin's runtime, and
is not an argument of the tool.
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
    """A function's schemas. ``model`` has a field for each argument; ``fields`` names it by parameter."""

    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    model: type[pydantic.BaseModel]
    fields: Mapping[str, str]
    runtime: tuple[str, ...]
    result: pydantic.TypeAdapter[Any]

    def arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments converted as the hints say. Raise ToolError if one does not fit."""
        try:
            arguments = self.model.model_validate(dict(args))
        except pydantic.ValidationError as error:
            wrong = (f"{_path(detail['loc'])}: {detail['msg']}" for detail in error.errors())
            raise contract.ToolError(f"The arguments do not fit: {'; '.join(wrong)}.") from None
        return {name: getattr(arguments, field) for name, field in self.fields.items()}

    def to_json(self, result: Any) -> Any:
        """Return the result as JSON values. Raise an exception if it does not match the output schema."""
        must_fit = self.output_schema is not None
        return self.result.dump_python(
            result, mode="json", by_alias=True, warnings="error" if must_fit else False
        )


def read(function: Callable[..., Any], descriptions: Mapping[str, str]) -> Signature:
    """Return the function's signature. Raise TypeError if no schema can be derived from it."""
    name_of_function = f"{function.__module__}.{function.__qualname__}"
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise TypeError(f"{name_of_function}: its type hints cannot be read: {error}.") from error
    model_fields: dict[str, Any] = {}
    field_names: dict[str, str] = {}
    runtime = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in _NAMED:
            raise TypeError(
                f"{name_of_function}: a tool takes named arguments, and {parameter} cannot be one."
            )
        if name not in hints:
            raise TypeError(f"{name_of_function}: {name!r} has no type, and the schema comes from types.")
        if isinstance(parameter.default, fields.FieldInfo):
            raise TypeError(
                f"{name_of_function}: write {name}: Annotated[..., Field(...)], with a plain default or none."
            )
        if hints[name] is contract.RuntimeAPI:
            runtime.append(name)
            continue
        # Fields have names of their own, because a parameter may have the name of a model's method.
        field_names[name] = f"argument_{len(field_names)}"
        model_fields[field_names[name]] = (hints[name], _field(name, parameter, hints[name], descriptions))
    try:
        model = pydantic.create_model(
            function.__name__, __config__=pydantic.ConfigDict(extra="forbid"), **model_fields
        )
        input_schema = _bare(model.model_json_schema(schema_generator=_Schema))
        result: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hints.get("return", Any))
        output_schema = _bare(result.json_schema(schema_generator=_Schema, mode="serialization"))
    except (pydantic.errors.PydanticUserError, pydantic_core.SchemaError) as error:
        raise TypeError(f"{name_of_function}: no schema can be made of its types: {error}") from error
    return Signature(
        input_schema=input_schema,
        # A mapping with arbitrary keys needs no schema, and only objects can have one.
        output_schema=output_schema if output_schema.get("properties") else None,
        model=model,
        fields=field_names,
        runtime=tuple(runtime),
        result=result,
    )


class _Schema(json_schema.GenerateJsonSchema):
    """Schemas without the titles that pydantic derives from names: they repeat the names, and cost tokens."""

    # A default that JSON cannot express is left out of the schema; the function still has it.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> json_schema.JsonSchemaValue:
        """Leave a default of None out where the schema does not take null (``SkipJsonSchema[None]``)."""
        default = super().default_schema(schema)
        if default.get("default", ...) is None and (
            "$ref" in default or default.get("type", "null") != "null"
        ):
            del default["default"]
        return default


def _field(name: str, parameter: inspect.Parameter, hint: Any, descriptions: Mapping[str, str]) -> Any:
    """Return the field of a parameter. An ``Annotated`` hint takes precedence over the docstring and the name."""
    annotated = fields.FieldInfo.from_annotation(hint)
    more: dict[str, Any] = {}
    if annotated.alias is None:
        more["alias"] = name
    if annotated.description is None and descriptions.get(name):
        more["description"] = descriptions[name]
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return pydantic.Field(default, **more)


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    for subschema in (schema, *schema.get("$defs", {}).values()):
        subschema.pop("title", None)
    return schema


def _path(parts: tuple[int | str, ...]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
