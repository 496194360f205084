"""What is kept of a call? How it ended, how long it took, how large it was; of arguments only what is no secret."""

from __future__ import annotations

import datetime as dt
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.utils import timezone

from toolbelt import conf
from toolbelt.runtime import record_writer, secrets
from toolbelt.store import calls

# In a key of the arguments: its value is a secret, or might be one.
_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|api[-_ ]?key|access[-_ ]?key|private[-_ ]?key|credential|authorization"
    r"|cookie|session[-_ ]?id|signature",
    re.IGNORECASE,
)
DEEPEST = 50

_log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class Recording:
    """One call from its beginning on; :meth:`end` writes its record."""

    agent: str
    tool: str
    arguments: Any
    session: str | None = None
    request_id: str | None = None
    plugin: str = ""
    at: dt.datetime = field(default_factory=timezone.now)
    begun: float = field(default_factory=time.monotonic)

    def end(self, outcome: str, *, error: str = "", result_bytes: int = 0) -> None:
        """Record how it ended. A record that cannot be kept is logged: the tool has run, and its answer counts."""
        try:
            record = {
                "at": self.at,
                "agent": self.agent,
                "session": self.session or "",
                "request_id": self.request_id or "",
                "tool": self.tool,
                "plugin": self.plugin,
                "outcome": outcome,
                "error": secrets.mask(error),
                "duration_ms": round((time.monotonic() - self.begun) * 1000),
                "arguments_bytes": size(self.arguments),
                "result_bytes": result_bytes,
                "arguments": self._kept(),
            }
            if not record_writer.take(record):
                calls.record_all([record])
        except Exception:
            _log.exception("call not recorded", agent=self.agent, tool=self.tool, outcome=outcome)

    def _kept(self) -> Any:
        if not conf.RECORD_ARGUMENTS or not size(self.arguments):
            return None
        return json.loads(json.dumps(masked(self.arguments)))


def prune(age: dt.timedelta) -> int:
    """Forget the calls that came in longer ago than this; say how many."""
    return calls.prune(timezone.now() - age)


def size(value: Any) -> int:
    """Say how many bytes the value has as JSON in UTF-8; 0 for what JSON cannot say."""
    try:
        return len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode(errors="replace"))
    except (TypeError, ValueError, RecursionError):
        return 0


def masked(value: Any, depth: int = 0) -> Any:
    """Give the value without secrets: neither what a key names one, nor one that a plugin was given."""
    if depth > DEEPEST:
        return secrets.MASK
    match value:
        case Mapping():
            return {
                str(key): secrets.MASK if _SECRET.search(str(key)) else masked(one, depth + 1)
                for key, one in value.items()
            }
        case list() | tuple():
            return [masked(one, depth + 1) for one in value]
        case str():
            return (
                secrets.mask(value)
                .replace("\0", "\N{REPLACEMENT CHARACTER}")
                .encode(errors="replace")
                .decode()
            )
    return value
