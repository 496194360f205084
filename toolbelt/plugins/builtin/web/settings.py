"""What did the operator choose for the web plugin? Size, time, and the name that it gives itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_CEILINGS = {"most_bytes": 10_000_000, "seconds": 120}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The most bytes of a body that are read, the seconds for one fetch with its redirects, and the User-Agent."""

    most_bytes: int = 1_000_000
    seconds: int = 20
    user_agent: str = "Toolbelt (web__fetch)"


def read(config: Mapping[str, Any]) -> Settings:
    """Read the plugin's config. A variable's value arrives as text, and counts as its number."""
    chosen: dict[str, Any] = {}
    for name, value in config.items():
        text = "" if isinstance(value, bool) else str(value)
        if name in _CEILINGS:
            if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= _CEILINGS[name]:
                raise ValueError(f"{name} must be a whole number from 1 to {_CEILINGS[name]}, not {value!r}.")
            chosen[name] = int(text)
        elif name == "user_agent":
            if not re.fullmatch(r"[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?", text):
                raise ValueError(f"user_agent must be 1 to 200 letters of ASCII in one line, not {value!r}.")
            chosen[name] = text
        else:
            raise ValueError(
                f"{name!r} is no setting of web: there are {', '.join(_CEILINGS)} and user_agent."
            )
    return Settings(**chosen)
