"""What does the editor of a toolkit show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolbelt.web.presenters import answers, pieces, toolkits


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """One tool of the toolkit in the editor. `open`: it has a note or options, or something is wrong with it."""

    place: int
    key: str
    about: str
    note: str
    options: str
    open: bool
    problem: str
    options_problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRow:
    """One trigger in the editor: patterns a line each. `number_text` is for ids. `problems` are by field; `fires` and
    `decides` say what the message that is tried comes to.
    """

    place: int
    number: int
    number_text: str
    name: str
    any: str
    every: str
    none: str
    whole: bool
    focus: str
    required: bool
    fires: bool
    decides: bool
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The editor, as it is stored or as somebody typed it. `others` counts notes on tools that are no members, which
    stay as they are. `problems` are by field, those of none under the empty name.
    """

    key: str
    new: bool
    action: str
    back: str
    title: str
    description: str
    policy: str
    policy_when_off: str
    examples: str
    members: tuple[MemberRow, ...]
    triggers: tuple[TriggerRow, ...]
    others: int
    known: tuple[str, ...]
    message: str
    whose: tuple[pieces.Choice, ...]
    told: toolkits.Told
    reason: str
    seen: str
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """The page of the editor."""

    form: Form
    here: str
    notice: answers.Notice | None = None
