"""The errors that Toolbelt raises, by who can fix them.

::

    ToolbeltError
    ├── Invalid               the writer: the input has problems, each with its path
    │   └── ProviderLimit     the operator: the active tools are valid, but the requested provider cannot take them
    ├── NotFound              the caller: the name does not exist; the most similar names that do
    │   ├── Archived          the operator: the agent is archived; how to restore it
    │   └── NotYourAgent      the caller: the token does not belong to this agent, which may not exist
    ├── Stale                 the writer: another operator changed the same key; its current value
    ├── ConfirmationRequired  the writer: valid, but with effects that must be confirmed
    ├── Refused               no one: a rule of the product forbids it; the alternative
    └── Unavailable           the database's administrator: unreachable, busy, read-only or full; when to try again

Expected outcomes (a load that is not allowed, a call that is refused) are values, not errors.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

UnavailableCode = Literal["database-unavailable", "database-busy", "database-read-only", "storage-full"]

# What to do before using an archived agent.
BRING_BACK = "bring it back first, on its Settings page or with archived: false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem: ``path`` is where (``agents.ada.tools[1]``), ``message`` is what is wrong and what to do."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ToolbeltError(Exception):
    """The base class of everything that Toolbelt raises on purpose."""

    code = "error"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems, with their paths in the input: by default the error itself, which has none."""
        return (Problem(path="", message=str(self)),)


class Invalid(ToolbeltError):
    """The input is not valid. ``problems`` holds all problems, not only the first."""

    code = "invalid"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in problems))

    @classmethod
    def of(cls, message: str) -> Invalid:
        """Return the error of an input that is invalid as a whole."""
        return Invalid([Problem(path="", message=message)])

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems, with their paths in the input."""
        return self._problems


class ProviderLimit(Invalid):
    """The active tools do not fit the requested provider; ``problems`` names each tool and what to do."""

    code = "provider-limit"

    def __init__(self, provider: str, problems: Sequence[Problem]) -> None:
        self.provider = provider
        super().__init__(problems)


class NotFound(ToolbeltError):
    """Nothing has this name. ``nearest`` are similar names that exist, best first."""

    code = "not-found"

    def __init__(self, kind: str, name: str, names: Iterable[str] = ()) -> None:
        self.what, self.name = kind, name
        self.nearest = nearest(name, names)
        hint = f" Did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        super().__init__(f"There is no {kind} named {name!r}.{hint}")


class Archived(NotFound):
    """The agent is archived: requests as this agent are answered as if it did not exist; an operator can restore it."""

    def __init__(self, agent: str) -> None:
        super().__init__("agent", agent)
        self.args = (f"{agent} is archived and answers no requests: {BRING_BACK}.",)


class NotYourAgent(NotFound):
    """The agent does not exist, or the token belongs to another one: which of the two is not revealed."""

    def __init__(self, agent: str) -> None:
        super().__init__("agent", agent)
        self.args = (f"There is no agent named {agent!r}, or this token belongs to another agent.",)


Author = Literal["", "you", "operator", "source"]
_AUTHORS: Mapping[Author, str] = {
    "": "in the meantime",
    "you": "by you, in another tab or program",
    "operator": "by another operator",
    "source": "by its source",
}


class Stale(ToolbeltError):
    """The change was based on an outdated value of this key. ``now`` is the current one.

    ``fields`` holds every key of an entry that changed meanwhile, with its current value. ``by`` is who changed it: the
    writer themselves (``you``), another operator, or the source of a tool; empty if that is not known.
    """

    code = "stale"

    def __init__(
        self,
        key: str,
        was: Any,
        now: Any,
        wanted: Any = None,
        *,
        fields: Mapping[str, Any] | None = None,
        by: Author = "",
    ) -> None:
        self.key, self.was, self.now, self.wanted, self.by = key, was, now, wanted, by
        self.fields = dict(fields or {})
        super().__init__(
            f"{key} was changed {_AUTHORS[by]}: you saw {describe_value(was)}, it is {describe_value(now)} now. "
            "Review it, then repeat the change if you still want it."
        )


class ConfirmationRequired(ToolbeltError):
    """The change is valid but has far-reaching effects: repeat it with ``confirm``. ``differences`` describes them."""

    code = "confirmation-required"

    def __init__(self, reasons: Sequence[str], differences: dict[str, Any]) -> None:
        self.reasons, self.differences = tuple(reasons), differences
        super().__init__(" ".join(self.reasons))


class Refused(ToolbeltError):
    """A rule of the product forbids the change; the message names the rule and the alternative."""

    code = "refused"


class Unavailable(ToolbeltError):
    """The database cannot be used now. ``retry_after`` is when to try again, in seconds."""

    code: UnavailableCode = "database-unavailable"
    # Whether what was asked for holds in this process meanwhile.
    is_held = False

    def __init__(self, code: UnavailableCode, message: str, retry_after: int) -> None:
        self.code = code
        self.retry_after = retry_after
        super().__init__(message)

    @property
    def status(self) -> int:
        """Return the HTTP status of this error."""
        return 507 if self.code == "storage-full" else 503


class NotStored(Unavailable):
    """An emergency stop could not be stored; it holds in this process until it can be."""

    is_held = True

    def __init__(self, subject: str, reason: Unavailable) -> None:
        code: UnavailableCode = "database-unavailable" if reason.status != 503 else reason.code
        super().__init__(
            code,
            f"{subject} is blocked in this process of Toolbelt only, because the block could not be stored. {reason}"
            " Toolbelt stores it as soon as it can. To be sure, stop the other processes.",
            reason.retry_after,
        )


def describe_value(value: Any) -> str:
    """Return the state of a switch, an override or a field in words: on, off, not set, or the value itself."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict) and "ends" in value:
        return f"{describe_value(value.get('on'))} until {value['ends']}"
    return str(value)


def nearest(name: str, names: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return up to ``limit`` of the ``names`` names that are similar to ``name``, best first, ignoring case."""
    folded: dict[str, str] = {}
    for candidate in names:
        folded.setdefault(candidate.casefold(), candidate)
    return tuple(
        folded[hit] for hit in difflib.get_close_matches(name.casefold(), folded, n=limit, cutoff=0.6)
    )
