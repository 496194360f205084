"""What does the preview of one agent show: what its model gets, for a question that somebody puts together?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolbelt.web.presenters import access, agents, changes, model, pieces

View = Literal["tools", "policy", "json", "why"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The form. `sessions` are live ones to choose from, `moments` the changes after which it can be looked at."""

    message: str
    session: str
    request: str
    tool: str
    subagents: tuple[pieces.Choice, ...]
    views: tuple[pieces.Choice, ...]
    formats: tuple[pieces.Choice, ...]
    sessions: tuple[pieces.Choice, ...]
    moments: tuple[pieces.Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLine:
    """One tool as it is sent, its key in two parts. `own`: Toolbelt's own, which no budget counts. `mark` says that
    it came or went since, where two moments stand beside each other.
    """

    key: str
    prefix: str
    name: str
    reason: str
    tokens: str
    percent: int
    own: bool
    why_url: str
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a provider is sent, as JSON; or the `troubles` for which it would not take it. `id` is its place."""

    id: str
    label: str
    text: str
    size: str
    troubles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One question of a trace. `state` and `reason` are its answer, empty where it does not apply."""

    number: str
    asks: str
    state: str
    reason: str
    decides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a tool is on or off; `trouble` instead, where no such tool is known; neither, before one is named."""

    tool: str = ""
    state: access.State = "dormant"
    reason: str = ""
    steps: tuple[Step, ...] = ()
    trouble: str = ""
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The same of the agent as it was. `words` say which version, `moment` when that was; `notes` what of it is not
    certain; `compare_url` leads to where it can be copied back.
    """

    words: str
    moment: pieces.Moment | None
    notes: tuple[str, ...]
    compare_url: str
    agent: agents.AgentHeader
    view: View
    model: model.ModelView
    tools: tuple[ToolLine, ...]
    sent: Sent | None
    why: Why | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewPage:
    """The page. `trouble` says what of the question could not be asked; what stands there is without it.

    Of `tools`, `sent` and `why` there is what `view` shows; the policy is the model's. `past` is there where a version
    of the past was asked for, to stand beside it. `cut` says which MCP clients cut the policy, where it is shown.
    """

    agent: agents.AgentHeader
    question: Question
    trouble: str
    view: View
    model: model.ModelView
    facts: tuple[str, ...]
    tools: tuple[ToolLine, ...]
    pages: changes.Pages | None
    sent: Sent | None
    why: Why | None
    past: Past | None
    may_change: bool
    cut: tuple[str, ...] = ()
