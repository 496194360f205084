"""Findings: problems of an installation, each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# A problem keeps the installation from working as it should; a note is worth knowing.
Level = Literal["problem", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``code`` identifies the sort of finding; of a system check, it is the check's own id."""

    code: str
    message: str
    way_out: str
    level: Level = "problem"

    def document(self) -> dict[str, str]:
        """Return the finding as JSON."""
        return {"level": self.level, "code": self.code, "message": self.message, "way_out": self.way_out}
