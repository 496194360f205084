"""Operators and the interfaces through which they act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Via = Literal["screen", "admin", "api", "command", "import", "mcp", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The operator (user name) behind a change, and the interface that was used."""

    name: str
    via: Via
