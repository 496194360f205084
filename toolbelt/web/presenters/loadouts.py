"""What do the list of loadouts, the page of one, and its editor show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolbelt.web.presenters import access, answers, changes, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One loadout in the picture: where its box begins, its name (cut to the room there is), what it comes to, and
    what a reader is told of it.
    """

    name: str
    shown: str
    size: str
    x: int
    y: int
    here: bool
    built_in: bool
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Who extends whom, in pixels: boxes from the roots on the left, and the lines between them as paths."""

    width: int
    height: int
    box_width: int
    box_height: int
    nodes: tuple[Node, ...]
    lines: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Some names under a word: "categories", "plugins", "can be discovered", "disables"."""

    label: str
    names: tuple[str, ...]
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One loadout of the chain: what it names itself, and by that, which tools more or fewer there are than before."""

    name: str
    marks: tuple[access.Mark, ...]
    named: tuple[Names, ...]
    told: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadoutLine:
    """One loadout of the list. `used` says by whom in short, `more_users` by how many more. `up` and `down` are the
    names that it would change places with; both empty where it has no place of its own.
    """

    name: str
    marks: tuple[access.Mark, ...]
    description: str
    parent: str
    named: tuple[Names, ...]
    tools: str
    tokens: str
    used: tuple[str, ...]
    more_users: str
    percent: int
    up: str
    down: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadoutsPage:
    """The list."""

    loadouts: tuple[LoadoutLine, ...]
    picture: Picture
    total: str
    notice: answers.Notice | None
    may_add: bool
    may_order: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The tools of one plugin that a loadout brings, or lets be discovered; `because` says by what. Where there are
    many, `more_url` leads to all of the plugin.
    """

    title: str
    count: str
    tokens: str
    because: str
    tools: tuple[str, ...]
    more: str = ""
    more_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An agent, a loadout or a sub-app that has to do with it; `how` says in which way."""

    name: str
    url: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadoutPage:
    """The page of one. `built_in` says why it cannot be changed, where it cannot; `kept` why it cannot be removed."""

    name: str
    marks: tuple[access.Mark, ...]
    description: str
    built_in: str
    tools: str
    tokens: str
    picture: Picture
    levels: tuple[Level, ...]
    brings: tuple[Group, ...]
    discoverable: tuple[Group, ...]
    discovers: str
    agents: tuple[User, ...]
    agents_pages: changes.Pages
    find: pieces.FindAgents | None
    others: tuple[User, ...]
    kinds: tuple[str, ...]
    seen: str
    kept: str
    notice: answers.Notice | None
    may_change: bool
    may_add: bool
    may_remove: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The editor, as it is stored or as somebody typed it; `new`: it has no name yet. `more` are plugins that are not
    installed here, and `seen` is what the page was made from. `problems` are by field, those of none under the empty
    name.
    """

    name: str
    new: bool
    action: str
    back: str
    description: str
    parents: tuple[pieces.Choice, ...]
    plugins: tuple[pieces.Choice, ...]
    more: str
    categories: tuple[pieces.Choice, ...]
    discoverable: str
    disabled: str
    known: tuple[str, ...]
    reason: str
    seen: str
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """The page of the editor; `copied` names the loadout that it began with."""

    form: Form
    copied: str
    here: str
    notice: answers.Notice | None = None
