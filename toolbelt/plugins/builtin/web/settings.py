"""The web plugin's settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from toolbelt.plugins import config


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The maximum size of a body, the timeout of a fetch including redirects, and the User-Agent."""

    max_body_bytes: Annotated[config.Whole, Field(ge=1, le=10_000_000)] = 1_000_000
    seconds: Annotated[config.Whole, Field(ge=1, le=120)] = 20
    # Printable ASCII in one line, 1 to 200 characters.
    user_agent: Annotated[str, Field(pattern=r"^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$")] = (
        "Toolbelt (web__fetch)"
    )
