"""Conversations: what a model was told of its surface, and what it must still be told.

A conversation begins with a prefix: the system text and the tools, which never change again. Whatever changes later is
said at its end, so that nothing before it becomes invalid. A :class:`View` is what was said so far; :func:`compare`
returns the difference to a surface, and the view once the model has answered. Nothing is stored: the caller keeps the
view, as an opaque token, beside the messages that it describes. What may be called is decided by the surface alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from toolbelt.core import conversation_means, policy, schema, surface, tool_deltas

# How a tool is known to the model: offered; withdrawn, though its definition stays; declared, but deferred until it is
# offered; to be called through call_tool, because no definition could be added; or gone, after it was one of those.
How = Literal["offered", "withdrawn", "deferred", "through", "gone"]


class Told(NamedTuple):
    """A tool as the model knows it: the digest of its definition, and how it is known."""

    digest: str
    how: How


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a surface says: the digest of each tool, policy section and loadable toolkit, by name."""

    tools: Mapping[str, str]
    sections: Mapping[str, str]
    loadable: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Return the digest of everything."""
        return _digest(schema.canonical([self.tools, self.sections, self.loadable]))


EMPTY = Content(tools={}, sections={}, loadable={})


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a model was told: the ``start`` with its prefix, and what was said ``later``, where that differs.

    ``deferred`` are the tools whose definitions the prefix has in reserve. A section or loadable toolkit that ended has
    an empty digest: everything that was ever said keeps its name. ``now`` is the digest of the content that the model
    was told last.
    """

    start: Content
    deferred: frozenset[str] = frozenset()
    tools: Mapping[str, Told]
    sections: Mapping[str, str]
    loadable: Mapping[str, str]
    now: str

    @property
    def declared(self) -> frozenset[str]:
        """Return the names of all tools in the prefix."""
        return frozenset(self.start.tools)

    def all_tools(self) -> dict[str, Told]:
        """Return every tool that the model knows, by name."""
        known = {
            name: Told(digest, "deferred" if name in self.deferred else "offered")
            for name, digest in self.start.tools.items()
        }
        return known | dict(self.tools)

    def of_kind(self, *how: How) -> frozenset[str]:
        """Return the names of the tools that are known in one of these ways."""
        return frozenset(name for name, told in self.all_tools().items() if told.how in how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a model must be told, by name and in order; each is empty if there is nothing of its kind.

    added: Tools to define, also again. offered: Tools whose definition it has. replaced: Tools whose definition
    replaces the one that it has. altered: Tools whose definition changed, which can only be said. through: Tools to
    call through call_tool. removed: Tools that it may no longer call. said: Sections of the policy that are new or
    differ. ended: Sections that no longer hold. loadable: Toolkits that it may load now. unloadable: Those that it no
    longer may.
    """

    added: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    loadable: tuple[str, ...] = ()
    unloadable: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


NOTHING = Changes()


def content_of(
    shown: surface.Surface, hashes: Mapping[str, str] | None = None, *, without: Collection[str] = ()
) -> Content:
    """Return what a surface says. ``hashes`` are those of its tools, if they are known; some may be left out."""
    if hashes is None:
        hashes = tool_deltas.hashes((*shown.tools, *shown.meta_tools))
    return Content(
        tools={name: digest for name, digest in hashes.items() if name not in without},
        sections={section_key(section): _digest(section.text) for section in shown.policy.sections},
        loadable={key: _digest(line) for key, line in shown.policy.loadable_lines},
    )


def section_key(section: policy.Section) -> str:
    """Return the name of a policy section, as the model reads it: ``toolkit kb``, ``tool fetch``."""
    return f"tool {section.tool}" if section.tool else f"toolkit {section.toolkit}"


def begin(now: Content, deferred: Mapping[str, str] | None = None) -> View:
    """Return the view of a new conversation. ``deferred``: the digests of definitions that it has in reserve."""
    reserve = {name: digest for name, digest in (deferred or {}).items() if name not in now.tools}
    return View(
        start=replace(now, tools=dict(sorted({**now.tools, **reserve}.items()))),
        deferred=frozenset(reserve),
        tools={},
        sections={},
        loadable={},
        now=now.digest,
    )


def compare(view: View, now: Content, means: conversation_means.Means) -> tuple[Changes, View]:
    """Return what the model must be told, and the view once it has answered. Pure, and the same every time."""
    if view.now == now.digest:
        return NOTHING, view
    known = view.all_tools()
    kinds: dict[str, list[str]] = {}
    for name, digest in sorted(now.tools.items()):
        told = known.get(name)
        if told is not None and told.how == "gone":
            told = None
        kind, how = _told_again(told, digest, means) if told else _told_first(means)
        known[name] = Told(digest, how)
        if kind:
            kinds.setdefault(kind, []).append(name)
        if kind == "offered" and told is not None and told.digest != digest:
            kinds.setdefault("altered", []).append(name)
    for name, told in sorted(known.items()):
        if name in now.tools or told.how in ("withdrawn", "deferred", "gone"):
            continue
        kinds.setdefault("removed", []).append(name)
        known[name] = Told(told.digest, "gone" if told.how == "through" else "withdrawn")
    sections = {**view.start.sections, **view.sections}
    loadable = {**view.start.loadable, **view.loadable}
    kinds["said"], kinds["ended"] = _differences(sections, now.sections)
    kinds["loadable"], kinds["unloadable"] = _differences(loadable, now.loadable)
    after = replace(
        view,
        tools=_later(view, known),
        sections=_changed(view.start.sections, sections, now.sections),
        loadable=_changed(view.start.loadable, loadable, now.loadable),
        now=now.digest,
    )
    return Changes(**{kind: tuple(names) for kind, names in kinds.items()}), after


def compacted(view: View, means: conversation_means.Means) -> View:
    """Return what is left of a view after the provider compacted everything that was said since the prefix.

    Where tools are withdrawn, it keeps their changes. Words are gone in any case, also those that say that a definition
    changed which cannot be replaced. Names stay known, because a summary may repeat what they stood for.
    """
    tools = {}
    for name, told in view.tools.items():
        if means.remove == "withdraw" and name in view.start.tools and not means.replace:
            tools[name] = Told(view.start.tools[name], told.how)
        elif means.remove == "withdraw" and told.how != "through":
            tools[name] = told
        elif name not in view.start.tools:
            tools[name] = Told(told.digest, "gone")
    sections = {name: "" for name in view.sections if name not in view.start.sections}
    loadable = {name: "" for name in view.loadable if name not in view.start.loadable}
    return replace(view, tools=tools, sections=sections, loadable=loadable, now="")


def purged(view: View, purges: Mapping[str, int], after: int) -> tuple[str, ...]:
    """Return what the model was ever told of and must leave its context, in order: ``tool fetch``, ``toolkit kb``.

    ``purges`` are the numbers of the latest purges by these names. Those up to ``after`` precede the conversation.
    """
    later = {name for name, number in purges.items() if number > after}
    if not later:
        return ()
    known = names(view.start.tools, view.start.sections, view.start.loadable)
    return tuple(sorted(later & (known | names(view.tools, view.sections, view.loadable))))


def names(tools: Iterable[str], sections: Iterable[str], loadable: Iterable[str]) -> frozenset[str]:
    """Return what a model was told of, with its kind: ``tool fetch``, ``toolkit kb``."""
    return frozenset(
        (*(f"tool {name}" for name in tools), *sections, *(f"toolkit {key}" for key in loadable))
    )


def _told_first(means: conversation_means.Means) -> tuple[str, How]:
    """Return which change a tool is that the model does not know, and how it is known then."""
    return ("added", "offered") if means.add == "define" else ("through", "through")


def _told_again(told: Told, digest: str, means: conversation_means.Means) -> tuple[str, How]:
    """Return which change a tool is that the model knows and may call, and how it is known then."""
    is_same = told.digest == digest
    if told.how == "through":
        return ("" if is_same else "altered"), "through"
    if told.how == "offered" and is_same:
        return "", "offered"
    if not is_same and means.replace:
        # The model was told that one that it no longer sees is not available.
        return ("replaced" if told.how == "offered" else "added"), "offered"
    return ("altered" if told.how == "offered" else "offered"), "offered"


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the names that are new or differ, in the order of ``now``, and those that ended."""
    said = [name for name, digest in now.items() if before.get(name) != digest]
    return said, sorted(name for name, digest in before.items() if digest and name not in now)


def _changed(start: Mapping[str, str], before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return what differs from the start, or was not in it: the digest of each name, empty for one that ended."""
    names = sorted({*before, *now})
    return {name: now.get(name, "") for name in names if now.get(name, "") != start.get(name)}


def _later(view: View, known: Mapping[str, Told]) -> dict[str, Told]:
    """Return the tools that differ from the start."""
    start = replace(view, tools={}).all_tools()
    return {name: told for name, told in sorted(known.items()) if start.get(name) != told}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: tool_deltas.DIGITS]
