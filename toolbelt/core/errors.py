"""What can go wrong, and who can put it right?

::

    ToolbeltError
    ├── Invalid               the writer: what was written is not sound; every problem with its path
    │   └── ProviderLimit     the operator: what is active is sound, but the provider asked for does not take it
    ├── NotFound              the caller: that name is not known; the nearest names that are
    │   └── Archived          the operator: the agent is there, and archived; how to bring it back
    ├── Stale                 the writer: somebody changed this very key since; what it is now
    ├── ConfirmationRequired  the writer: sound, but it deserves a second look; the differences
    ├── Refused               nobody as things stand: a rule of the product forbids it; the way out
    └── Unavailable           whoever runs the database: it is away, busy, read-only or full; when to try again

Expected outcomes (a load that is not allowed, a call that is refused) are values, not errors.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

UnavailableCode = Literal["database-unavailable", "database-busy", "database-read-only", "storage-full"]

# The way out for whatever an archived agent does not do.
BRING_BACK = "bring it back first, on its Settings page or with archived: false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong: ``path`` says where (``agents.ada.tools[1]``), ``message`` what and the way out."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ToolbeltError(Exception):
    """The root of everything that Toolbelt raises on purpose."""

    code = "error"


class Invalid(ToolbeltError):
    """What was written is not sound. ``problems`` holds all of them, not only the first."""

    code = "invalid"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class ProviderLimit(Invalid):
    """What is active does not fit the provider that it was asked for; ``problems`` names each tool and the way out."""

    code = "provider-limit"

    def __init__(self, provider: str, problems: Sequence[Problem]) -> None:
        self.provider = provider
        super().__init__(problems)


class NotFound(ToolbeltError):
    """Nothing has this name. ``nearest`` are names that exist and look alike, best first."""

    code = "not-found"

    def __init__(self, what: str, name: str, known: Iterable[str] = ()) -> None:
        self.what, self.name = what, name
        self.nearest = nearest(name, known)
        hint = f" Did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        super().__init__(f"There is no {what} named {name!r}.{hint}")


class Archived(NotFound):
    """The agent is archived: to whoever asks as one, it is not there; an operator may bring it back."""

    def __init__(self, agent: str) -> None:
        super().__init__("agent", agent)
        self.args = (f"{agent} is archived, so it answers nobody: {BRING_BACK}.",)


class Stale(ToolbeltError):
    """The change was based on a state of this key that is no longer so. ``now`` is what it is."""

    code = "stale"

    def __init__(self, key: str, was: Any, now: Any, wanted: Any = None) -> None:
        self.key, self.was, self.now, self.wanted = key, was, now, wanted
        super().__init__(
            f"{key} was changed by somebody else: you saw {was_in_words(was)}, it is {was_in_words(now)} now. "
            "Look at it again, then repeat the change if you still want it."
        )


class ConfirmationRequired(ToolbeltError):
    """The change is sound but far-reaching: repeat it with ``confirm``. ``differences`` says what it would do."""

    code = "confirmation-required"

    def __init__(self, reasons: Sequence[str], differences: dict[str, Any]) -> None:
        self.reasons, self.differences = tuple(reasons), differences
        super().__init__(" ".join(self.reasons))


class Refused(ToolbeltError):
    """A rule of the product forbids the change; the message names the rule and the way out."""

    code = "refused"


class Unavailable(ToolbeltError):
    """The database cannot be used at the moment. ``retry_after`` is when to try again, in seconds."""

    code: UnavailableCode = "database-unavailable"

    def __init__(self, code: UnavailableCode, message: str, retry_after: int) -> None:
        self.code = code
        self.retry_after = retry_after
        super().__init__(message)

    @property
    def status(self) -> int:
        """Return the HTTP status that says so."""
        return 507 if self.code == "storage-full" else 503


def was_in_words(value: Any) -> str:
    """Say the state of a switch, an override or a field in a word: on, off, unset, or the value itself."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict) and "ends" in value:
        return f"{was_in_words(value.get('on'))} until {value['ends']}"
    return str(value)


def nearest(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Give up to ``limit`` of the ``known`` names that look like ``name``, best first, ignoring case."""
    folded: dict[str, str] = {}
    for one in known:
        folded.setdefault(one.casefold(), one)
    return tuple(
        folded[hit] for hit in difflib.get_close_matches(name.casefold(), folded, n=limit, cutoff=0.6)
    )
