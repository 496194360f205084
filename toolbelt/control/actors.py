"""Who does this, and through which shell?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Via = Literal["screen", "admin", "api", "command", "import", "mcp", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The operator (user name) behind a change, and the shell that it came through."""

    name: str
    via: Via
