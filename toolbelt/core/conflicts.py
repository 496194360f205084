"""Conflicts: two sources that give one tool different options (docs/semantics.md: Conflicts).

Sources rank: always-on, sub-app, switches, initial, loaded. No options differ from some options; equal options are no
conflict. If a conflict occurs anyway, the first source wins, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.core import agents, catalog, schema

SourceKind = Literal["always-on", "sub-app", "switch", "initial", "loaded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source that grants a tool, and the options that it passes (None: no options)."""

    kind: SourceKind
    name: str
    options: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A tool that two sources grant with different options; ``first`` is the one that wins."""

    tool: str
    first: Source
    second: Source

    @property
    def message(self) -> str:
        """Return the conflict as a sentence, which names options and never their values."""
        first, second = _in_words(self.first.options), _in_words(self.second.options)
        other = "other values of the same" if first == second else second
        return (
            f"{self.tool} comes from {self.first.kind} {self.first.name!r} with {first} and "
            f"from {self.second.kind} {self.second.name!r} with {other}."
        )

    @property
    def warning(self) -> str:
        """Return the warning for a surface on which the conflict occurs."""
        return f"{self.message} The first one applies."


def sources(
    stored: catalog.Catalog,
    agent: agents.Agent,
    tool: str,
    *,
    loaded: Iterable[str] = (),
    loaded_by_name: Iterable[str] = (),
) -> Iterator[Source]:
    """Yield the sources that grant ``tool`` to the agent, by rank.

    ``loaded`` are toolkits that the session loaded besides the initial ones; ``loaded_by_name`` are tools.
    """
    for always in agent.tools:
        if always.tool == tool:
            yield Source(kind="always-on", name=tool, options=always.options or None)
    for bound, sub_app in stored.bound.get(agent.key, ()):
        if bound == tool:
            yield Source(kind="sub-app", name=sub_app, options=None)
    kits = stored.toolkits_of.get(tool, ())
    for toolkit in kits:
        if agent.switches.get(toolkit.key):
            yield Source(kind="switch", name=toolkit.key, options=options_of(toolkit, tool))
    for toolkit in kits:
        if toolkit.key in agent.initial_toolkits and toolkit.key in agent.allowed_toolkits:
            yield Source(kind="initial", name=toolkit.key, options=options_of(toolkit, tool))
    loaded = set(loaded)
    for toolkit in kits:
        if toolkit.key in loaded:
            yield Source(kind="loaded", name=toolkit.key, options=options_of(toolkit, tool))
    if tool in set(loaded_by_name):
        yield Source(kind="loaded", name=tool, options=None)


def first_conflict(candidates: Iterable[Source], tool: str) -> Conflict | None:
    """Return the first conflict among the sources of one tool, or None."""
    ranked = iter(candidates)
    first = next(ranked, None)
    for second in ranked:
        if first is not None and not schema.same(second.options, first.options):
            return Conflict(tool=tool, first=first, second=second)
    return None


def tools_with_options(stored: catalog.Catalog, agent: agents.Agent) -> frozenset[str]:
    """Return the tools that any source passes options to: only these can conflict."""
    always_on = frozenset(always.tool for always in agent.tools if always.options)
    return stored.with_options | always_on if always_on else stored.with_options


def of_agent(stored: catalog.Catalog, agent: agents.Agent) -> tuple[Conflict, ...]:
    """Return the conflicts in the agent's configuration, for a check on saving.

    A tool that the agent's own switches or overrides deny has no sources.
    """
    result = []
    for tool in sorted(tools_with_options(stored, agent)):
        if agent.overrides.get(tool) is False:
            continue
        if any(agent.switches.get(kit.key) is False for kit in stored.toolkits_of.get(tool, ())):
            continue
        conflict = first_conflict(sources(stored, agent, tool), tool)
        if conflict is not None:
            result.append(conflict)
    return tuple(result)


def options_of(toolkit: catalog.Toolkit, tool: str) -> Mapping[str, Any] | None:
    """Return the options that the toolkit passes to its member (None: no options)."""
    return next((member.options or None for member in toolkit.members if member.tool == tool), None)


def _in_words(options: Mapping[str, Any] | None) -> str:
    """Return options by their names: their values may be secrets, and the message reaches the model."""
    if not options:
        return "no options"
    return f"the option{'s' if len(options) > 1 else ''} {', '.join(map(repr, options))}"
