"""What do the pages of plugins and upstream servers show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolbelt.web.presenters import access, answers, pieces, texts

# The shapes that states have on every page.
Shape = Literal["active", "discoverable", "denied", "dormant", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a plugin is: its shape and word, a sentence behind it, and the error if it has failed."""

    shape: Shape
    word: str
    about: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One of the switches of a plugin: "active", "blocked" or "trusted". `on` is what is stored, `said` says it,
    `about` what it does, `act` what the button does ("Stop for everyone").
    """

    name: str
    label: str
    on: bool
    said: str
    about: str
    act: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginLine:
    """One plugin of the list. `kind` is "code", "stdio" or "HTTP"; code `runs` in this process, or does not;
    `reach` says who has its tools.

    `waiting` tools wait for a look. `asking`: its server is being asked at this moment.
    """

    id: str
    name: str
    title: str
    namespace: str
    description: str
    kind: str
    runs: bool
    trusted: bool
    state: State
    tools: int
    reach: str
    waiting: int
    seen: pieces.Moment | None
    asking: bool
    askable: bool
    active: Control
    blocked: Control


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """What could be here and is not: `where` it comes from, `line` what to write or run for it, `error` if it broke."""

    name: str
    where: str
    line: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How far a refresh has come. `url` asks again while it is `under_way`; `words` say it, for eyes and ears."""

    under_way: bool
    words: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsPage:
    """The list. `servers` are the upstream servers that a refresh of all would ask; `installed` are plugins that are
    installed and not listed, `unknown` those that run here and were not taken in.
    """

    plugins: tuple[PluginLine, ...]
    installed: tuple[Unlisted, ...]
    unknown: tuple[Unlisted, ...]
    query: str
    shows: tuple[pieces.Choice, ...]
    narrowed: bool
    in_all: int
    file: str
    servers: int
    matches: str
    asking: Asking | None
    notice: answers.Notice | None
    may_change: bool
    may_add: bool
    may_see: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """One field that differs: its name in words, the difference in a sentence if it can be told, and the lines."""

    label: str
    told: tuple[str, ...]
    text: texts.Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One tool to look at. `value` is its key with the hash of what is shown, as the form sends it.

    Of a new one `description` and `schema` are there, of the others the `differences`. `users` says who has it;
    `moved`: it became another version while somebody looked.
    """

    value: str
    key: str
    prefix: str
    name: str
    kind: Literal["new", "changed", "renamed", "gone"]
    word: str
    tone: str
    about: str
    at_server: str
    risk: access.Risk
    tokens: str
    delta: str
    users: str
    flags: tuple[tuple[texts.Piece, ...], ...]
    description: texts.Text | None
    schema: texts.Text | None
    arguments: str
    differences: tuple[FieldDifference, ...]
    ticked: bool
    moved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What there is to look at: `changes` that wait for a decision, and what is `gone`, which needs none
    (the first of `all_gone`).

    `later` counts those that follow when these are decided; `is_one`: there is nothing to choose among. `may_carry`:
    the reader may let new names take over what the old ones had; `renamed` says that there are any.
    """

    changes: tuple[Change, ...]
    gone: tuple[Change, ...]
    all_gone: int
    later: int
    is_one: bool
    renamed: bool
    may_carry: bool
    flagged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLine:
    """One tool of the plugin, with its state for everyone, and who has it now."""

    prefix: str
    name: str
    description: str
    risk: access.Risk
    tokens: str
    state: Shape
    word: str
    users: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of what is known. `code`: it is to be read letter by letter; `parts` may hold named characters."""

    label: str
    parts: tuple[texts.Piece, ...]
    code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How a server is reached, for those who may see it: `kind` "stdio" or "HTTP", the facts, the form that changes it
    (None where it is none of the web's business), and the `command` that would add it anew.
    """

    kind: str
    facts: tuple[Fact, ...]
    form: ServerForm | None
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerForm:
    """What somebody types to say where a server is; `seen` is what the page showed, `problems` by the field's name."""

    name: str = ""
    namespace: str = ""
    title: str = ""
    url: str = ""
    headers: str = ""
    seen: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginPage:
    """The page of one plugin. `problems` tell what of its last list could not be taken in, or was made to fit."""

    plugin: PluginLine
    trusted: Control
    size: str
    review: Review
    tools: tuple[ToolLine, ...]
    more_tools: int
    every_url: str
    reached: Reached | None
    facts: tuple[Fact, ...]
    problems: tuple[str, ...]
    stderr: texts.Text | None
    asking: Asking | None
    notice: answers.Notice | None
    may_change: bool
    may_approve: bool
    may_see: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPage:
    """The form that adds a server over HTTP, and the command for one that is run here."""

    form: ServerForm
    command: str
    may_see: bool
    notice: answers.Notice | None = None
