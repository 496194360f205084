"""What does the page about the installation show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line: what, how it is, and in smaller letters what else there is to say of it. `state` is the shape beside
    it, empty for what is merely so.
    """

    label: str
    value: str
    about: str = ""
    state: str = ""
    when: pieces.Moment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Facts that belong together."""

    id: str
    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plugin or upstream server: `kind` is "code", "stdio" or "HTTP"; `seen` when its server last answered."""

    name: str
    title: str
    kind: str
    state: str
    word: str
    error: str
    tools: str
    seen: pieces.Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPage:
    """The page. `state` and `summary` say in a line whether all is well; `findings` what is not."""

    state: str
    summary: str
    findings: tuple[str, ...]
    groups: tuple[Group, ...]
    plugins: tuple[Plugin, ...]
