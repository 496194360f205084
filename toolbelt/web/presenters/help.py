"""What does the page of help show?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A reason code: what it says, and what to do where its answer is not wanted."""

    name: str
    says: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One question of the resolution: its number and words, the state that it answers with, the codes it answers."""

    number: int
    asks: str
    state: str
    codes: tuple[Code, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Something that stands on the pages, and what it means. `shape` is that of a state, `mark` the tone of a badge."""

    name: str
    means: str
    shape: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpPage:
    """The page. `docs` are the files of the documentation, as a path and what is in it."""

    layers: tuple[Layer, ...]
    states: tuple[Term, ...]
    marks: tuple[Term, ...]
    words: tuple[Term, ...]
    docs: tuple[Term, ...]
