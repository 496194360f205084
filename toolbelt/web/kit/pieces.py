"""Small values that several pages show."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

# The three stored states, in the words of the fields `on` and `was` of every form.
Stored = Literal["true", "false", "unset"]
State = Literal["active", "discoverable", "denied", "dormant", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The line: where it asks (`action`), the filter as hidden `fields`, and `count` of what is shown, in words.

    `what` is "tools" or "toolkits". `agents` can be ticked (none ticked: all of them), or one of `toolkits` chosen,
    where the list does not say it. `words` are the states to set, with what their buttons say.
    """

    action: str
    fields: tuple[Field, ...]
    count: str
    what: str
    words: tuple[tuple[str, str], ...]
    agents: tuple[str, ...] = ()
    toolkits: tuple[Choice, ...] = ()


class View(types.SimpleNamespace):
    """What a template shows, by name. Each name is declared once: where a view model computes its value."""

    def __getitem__(self, name: str) -> object:
        # Templates look for an item before an attribute: without this, each name would cost an exception.
        return self.__dict__[name]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.__dict__.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point in time: `iso` for machines, `words` to read ("3 min ago"), `full` on hovering."""

    iso: str
    words: str
    full: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of a select or of a row of chips; `count` is printed behind the label unless it is None."""

    value: str
    label: str
    chosen: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One hidden field of a form."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One line of "this becomes that". `now` is there when an undo finds a third state; `prefix` is the
    namespace of a tool, which stands before `what`.
    """

    what: str
    before: str
    after: str
    now: str | None = None
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one change did to what the model gets.

    The deltas carry their sign ("−23", "+4,118", "±0"); `notes` are the consequences that no number tells
    ("policy of DevOps replaced by its off text", "2 live sessions").
    """

    tools_before: str
    tools_after: str
    tools_delta: str
    tokens_before: str
    tokens_after: str
    tokens_delta: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How much of a budget is used: in `words` ("12 of 20 tools, 9.4k of 16k tokens"), in `percent` of the limit that
    is nearer, and whether it is `over`; `then` says what happens on passing it.
    """

    words: str
    percent: int
    over: bool
    then: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """The newest change of one agent: "olive turned devops off", and when.

    `entry` is the audit entry that an undo would name; None where there is nothing to undo or the reader
    may not.
    """

    who: str
    did: str
    when: Moment
    entry: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One heading of a table. `url` sorts by it; `order` is "ascending", "descending" or "" (neither)."""

    name: str
    label: str
    url: str
    order: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The emergency stop of a tool or a toolkit: `on` is what is stored, `url` takes what is wanted."""

    key: str
    url: str
    on: bool
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindAgents:
    """Asks which agents a page shall show, where there are too many for one; ``fields`` are what else its address
    says.
    """

    action: str
    query: str
    fields: tuple[Field, ...]


def choices(
    labels: Mapping[str, str] | Iterable[tuple[str, str]], chosen: str, anything: str = ""
) -> tuple[Choice, ...]:
    """Return options from values and their labels; ``anything`` labels a first one, for no or an unknown choice."""
    pairs = dict(labels)
    first = [Choice(value="", label=anything, chosen=chosen not in pairs)] if anything else []
    return (
        *first,
        *(Choice(value=value, label=label, chosen=value == chosen) for value, label in pairs.items()),
    )
