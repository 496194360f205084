"""How is an upstream server, by what this process knows of it and what the rows say?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from toolbelt.core import errors
from toolbelt.plugins.upstream import lives
from toolbelt.runtime import secrets
from toolbelt.store import listings


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a server is, as far as this process and the rows know. ``state`` is this process's connection to it.

    ``answered`` is when it last listed its tools, to whichever process; ``problems`` what of that could not be taken.
    """

    state: lives.State
    is_being_asked: bool
    protocol: str = ""
    server: str = ""
    error: str = ""
    stderr: str = ""
    pause: float = 0.0
    asked: datetime | None = None
    answered: datetime | None = None
    tools: int = 0
    problems: tuple[errors.Problem, ...] = ()


def of(now: lives.Status, said: listings.Listing | None, *, is_being_asked: bool) -> Status:
    """Put together what the connection is ``now`` and what the server last ``said``, whoever it said that to."""
    return Status(
        state=now.state,
        is_being_asked=is_being_asked,
        protocol=now.protocol or (said.protocol if said else ""),
        server=now.server or (said.server if said else ""),
        error=secrets.mask(now.error or (said.error if said else "")),
        stderr=secrets.mask(now.stderr or (said.stderr if said else "")),
        pause=now.pause,
        asked=said.asked if said else None,
        answered=said.answered if said else None,
        tools=said.tools if said else 0,
        problems=said.problems if said else (),
    )
