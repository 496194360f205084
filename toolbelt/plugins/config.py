"""Parsing of a plugin's ``config`` into a pydantic dataclass, with clear errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, TypeVar

import pydantic

T = TypeVar("T")


class ConfigError(ValueError):
    """The plugin's config is not valid. The message names the key and the problem, for the operator."""


def _not_a_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("not a number")
    return value


# Accepts a number as text, as in a variable's value, but not true or false.
Whole = Annotated[int, pydantic.BeforeValidator(_not_a_bool)]


def read(settings: type[T], plugin: str, config: Mapping[str, Any]) -> T:
    """Return the settings in ``config``, with defaults for the rest. Raise ConfigError if a setting is not valid."""
    setting_names = {field.name for field in fields(settings)}  # type: ignore[arg-type]
    if unknown := sorted(set(config) - setting_names):
        raise ConfigError(
            f"{plugin} has no setting {unknown[0]!r}. Its settings are {', '.join(sorted(setting_names))}."
        )
    try:
        return pydantic.TypeAdapter(settings).validate_python(dict(config))
    except pydantic.ValidationError as error:
        problems = (
            f"{'.'.join(map(str, detail['loc']))}: {detail['msg'].removeprefix('Value error, ')}"
            for detail in error.errors()
        )
        raise ConfigError(f"The config of {plugin} is not valid: {'; '.join(problems)}.") from None
