"""What does the panel "What the model sees" show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSize(pieces.Row):
    """One tool that the model gets, its key in two parts; `percent` compares it with the largest one."""

    prefix: str
    name: str
    tokens: str
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySection:
    """One section of the policy, in prompt order. `on` is False for an off text."""

    toolkit: str
    on: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectivePart:
    """One toolkit's say: the trigger that matched, or "" where Python decided."""

    toolkit: str
    trigger: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """What a message would be focused on: no `tools`, no directive; no `message`, none was tried yet."""

    message: str = ""
    tools: tuple[str, ...] = ()
    tool_choice: str = "auto"
    because: tuple[DirectivePart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """The whole panel: as the next request will have it.

    `most_tools` and `most_tokens` are what the budget allows ("80", "16k"), empty where it sets none;
    `percent` then fills the meter, at most 100, and `over` says that the budget is passed. `warnings` are what
    the surface warns of, in a sentence each. `largest` and `others` are the tools, largest first, cut where the
    list folds.
    """

    tools: str
    tokens: str
    most_tools: str
    most_tokens: str
    percent: int
    over: bool
    warnings: tuple[str, ...]
    effect: pieces.Effect | None
    largest: tuple[ToolSize, ...]
    others: tuple[ToolSize, ...]
    smaller: str
    policy: tuple[PolicySection, ...]
    directive: Directive
