"""Compares the core with the reference (tests/reference), a second implementation of docs/semantics.md."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

from tests.core.reference_belts import At, Document
from tests.reference import world
from toolbelt.core import belts, scenarios, sessions, tool_versions
from toolbelt.core.request_key import RequestKey


def _origin(state: str, kind: str, name: str, detail: str = "") -> tuple[str, ...]:
    """Return what decided, with what of it if a loadout grants or offers. Elsewhere, the detail is only words."""
    return (
        (kind, name, detail.lower())
        if state in ("active", "discoverable") and kind == "loadout"
        else (kind, name)
    )


def prepared(document: Mapping[str, Any]) -> Document:
    """Return a belt with the hash and the tokens of each tool, which are no rules."""
    tools = belts.load(document, count_tokens=len, lenient=True).catalog.tools
    entries = document.get("tools") or ()
    stated = [
        {"hash": tool_versions.version(tools[it["key"]]), "tokens": tools[it["key"]].tokens} for it in entries
    ]
    return {**document, "tools": [{**entry, **more} for entry, more in zip(entries, stated, strict=True)]}


class Both:
    """The core and the reference, which get the same belt and the same steps. What differs is in ``differences``."""

    def __init__(self, belt: Document) -> None:
        self.core = scenarios.CoreWorld(count_tokens=len)
        self.reference = world.World(prepared, len)
        self.core.load(belt, lenient=True)
        self.reference.load(belt)
        self.differences: list[str] = []
        self._last: tuple[At, str] | None = None

    def take(self, at: At, action: str, value: Any) -> None:
        """Take a step in both."""
        now = self.reference.now
        with contextlib.nullcontext() if now is None else self.core.at(now):
            getattr(self, f"_{action}", self._meta)(at, action, value)

    def _time(self, at: At, action: str, value: Any) -> None:
        self.reference.now = value

    def _edit(self, at: At, action: str, value: Any) -> None:
        self.core.edit(value, lenient=True)
        self.reference.edit(value)

    def _last_again(self, at: At, action: str, value: Any) -> None:
        """Load or unload again what was last loaded, in the same session."""
        if self._last is not None:
            (agent, session, _), name = self._last
            self._meta((agent, session, at[2]), value, name)

    def _equip(self, at: At, action: str, value: Any) -> None:
        agent, name, _ = at
        if name is not None:
            session = self.core._sessions.get((agent, name)) or sessions.Session(key=name)
            self.core._sessions[agent, name] = dataclasses.replace(session, loadout=value)
            self.reference.equip(agent, name, value)

    def _call(self, at: At, action: str, value: Any) -> None:
        actual = self.core.call(RequestKey(*at), *value)
        expected = self.reference.call(world.Request(*at), *value)
        self._compare(f"call {value}", {key: actual.get(key) for key in expected}, expected)

    def _meta(self, at: At, action: str, value: Any) -> None:
        arguments = {} if value is None else {"toolkit": value}
        if action == "load_tools":
            self._last = (at, value)
        actual = dict(self.core.call(RequestKey(*at), action, arguments))
        expected = self.reference.call(world.Request(*at), action, arguments)
        if action == "list_toolkits" and "toolkits" in actual:
            actual["toolkits"] = [toolkit["name"] for toolkit in actual["toolkits"]]
        for options in ("existing_options", "candidate_options"):
            if options in expected and options in actual:
                # The answer names the options, and withholds their values.
                expected[options] = sorted(expected[options])
                actual[options] = sorted(actual[options])
        self._compare(f"{action} {value} {at}", {key: actual.get(key) for key in expected}, expected)

    def _surface(self, at: At, action: str, value: Any) -> None:
        subagent, message = value
        actual = self.core.surface(RequestKey(*at, subagent), message)
        expected = self.reference.surface(world.Request(*at, subagent), message)
        decisions = actual.resolution.all_decisions()
        self._compare(
            f"decisions {at} {value}",
            {key: (it.state, it.code, *_origin(it.state, *it.origin)) for key, it in decisions.items()},
            {
                key: (it.state, it.code, *_origin(it.state, *it.origin))
                for key, it in expected.decisions.items()
            },
        )
        self._compare(
            f"policy {at} {value}",
            [
                ("tool" if s.tool else "toolkit", s.tool or s.toolkit, s.state, s.tagged)
                for s in actual.policy.sections
            ],
            [tuple(section) for section in expected.sections],
        )
        directive = actual.directive and actual.directive.document()
        self._compare(
            f"directive {at} {value}",
            directive and (tuple(directive["active_tools"]), directive["tool_choice"]),
            expected.directive and (tuple(sorted(expected.directive[0])), expected.directive[1]),
        )
        self._compare(
            f"meta-tools {at} {value}",
            sorted(tool.name for tool in actual.meta_tools),
            sorted(expected.meta_tools),
        )
        self._compare(
            f"loadable {at} {value}",
            [key for key, _ in actual.policy.loadable_lines],
            expected.loadable_toolkits,
        )
        # The model can call exactly the tools that are listed.
        self._compare(
            f"listed {at} {value}",
            sorted(tool.name for tool in actual.tools),
            sorted(expected.options),
        )

    def _compare(self, what: str, actual: Any, expected: Any) -> None:
        if actual != expected:
            if isinstance(actual, dict) and isinstance(expected, dict):
                names = [name for name in expected if actual.get(name) != expected[name]]
                actual, expected = ({name: it.get(name) for name in names} for it in (actual, expected))
            self.differences.append(f"{what}: the core has {actual}, the reference {expected}")
