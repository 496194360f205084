"""Does this configuration behave as its scenarios say? (the scenario files: a belt, steps, what must come out)

A scenario is run against a *world*: the core alone (:class:`CoreWorld`, what ``manage.py try`` uses), or any other
road to the same answers, such as rows and the two doors. Every world must give the same.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from toolbelt.core import (
    agents,
    belts,
    budgets,
    calls,
    errors,
    expectations,
    grants,
    meta_tools,
    resolution,
    sessions,
    surface,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One expectation that did not hold: ``step`` counts from 1, 0 is the belt itself."""

    scenario: str
    step: int
    expected: str
    got: str

    def __str__(self) -> str:
        where = f"step {self.step}" if self.step else "belt"
        return f"{self.scenario}: {where}: expected {self.expected}, got {self.got}"


class World(Protocol):
    """A road from a belt to answers. ``load`` and ``edit`` raise errors.Invalid for what is not sound. Within ``at`` it
    is that moment.
    """

    def at(self, now: datetime) -> AbstractContextManager[None]: ...

    def load(self, belt: Mapping[str, Any], *, lenient: bool) -> None: ...

    def edit(self, entries: Mapping[str, list[dict[str, Any]]], *, lenient: bool) -> None: ...

    def surface(
        self,
        agent: str,
        session: str | None,
        request_id: str | None,
        message: str | None,
        subagent: str | None,
    ) -> surface.Surface: ...

    def call(
        self,
        agent: str,
        session: str | None,
        request_id: str | None,
        tool: str,
        arguments: Any,
        subagent: str | None,
    ) -> Mapping[str, Any]: ...


class CoreWorld:
    """The core alone: no database, no clock; a tool that is admitted answers ``is_error: false``.

    Nothing ends but within :meth:`at`, for only there it is some moment.
    """

    def __init__(
        self,
        *,
        count_tokens: Callable[[str], int] | None = None,
        kind_loadouts: Mapping[str, str] = agents.KIND_LOADOUTS,
    ) -> None:
        self._count_tokens = count_tokens
        self._kind_loadouts = kind_loadouts
        self._document: dict[str, Any] = {}
        self._belt: belts.Belt | None = None
        self._sessions: dict[tuple[str, str], sessions.Session] = {}
        self._now: datetime | None = None

    @contextlib.contextmanager
    def at(self, now: datetime) -> Iterator[None]:
        """Let it be this moment within the block."""
        before, self._now = self._now, now
        try:
            yield
        finally:
            self._now = before

    def load(self, belt: Mapping[str, Any], *, lenient: bool) -> None:
        """Load a whole configuration; sessions begin anew."""
        self._document = copy.deepcopy(dict(belt))
        self._belt = self._read(lenient)
        self._sessions = {}

    def edit(self, entries: Mapping[str, list[dict[str, Any]]], *, lenient: bool) -> None:
        """Replace the keys that each entry names in the entry of the same key or name."""
        before = self._document
        self._document = edited(before, entries, self._now)
        try:
            self._belt = self._read(lenient)
        except errors.Invalid:
            self._document = before
            raise

    def surface(
        self,
        agent: str,
        session: str | None,
        request_id: str | None,
        message: str | None,
        subagent: str | None,
    ) -> surface.Surface:
        """Ask for a surface."""
        return surface.build(self._snapshot(agent, session, request_id, subagent), message)

    def call(
        self,
        agent: str,
        session: str | None,
        request_id: str | None,
        tool: str,
        arguments: Any,
        subagent: str | None,
    ) -> Mapping[str, Any]:
        """Call a tool: meta-tools answer for real, others only pass the gate."""
        snapshot = self._snapshot(agent, session, request_id, subagent)
        resolved = budgets.resolve(snapshot)
        if tool not in meta_tools.DEFINITIONS:
            answer = calls.admit(resolved, tool, arguments)
            return answer.document() if isinstance(answer, calls.Refusal) else {"is_error": False}
        told = calls.meta(resolved, snapshot, tool, arguments)
        if isinstance(told, calls.Refusal):
            return told.document()
        if told.session is not None and session is not None:
            self._sessions[agent, session] = told.session
        return {"is_error": False, **told.content}

    def _read(self, lenient: bool) -> belts.Belt:
        return belts.load(self._document, count_tokens=self._count_tokens, lenient=lenient)

    def _snapshot(
        self, agent: str, session: str | None, request_id: str | None, subagent: str | None
    ) -> resolution.Snapshot:
        if self._belt is None or agent not in self._belt.agents:
            raise errors.NotFound("agent", agent, self._belt.agents if self._belt else ())
        if subagent is not None and subagent not in agents.KINDS:
            raise errors.NotFound("kind of agent", subagent, agents.KINDS)
        consumer = self._belt.agents[agent]
        held = None
        if session is not None:
            held = self._sessions.get((agent, session)) or sessions.Session(key=session)
        return resolution.Snapshot(
            catalog=self._belt.catalog,
            agent=consumer if self._now is None else consumer.standing(self._now),
            session=held,
            request_id=request_id,
            subagent=subagent,
            kind_loadouts=self._kind_loadouts,
        )


def edited(
    document: Mapping[str, Any], entries: Mapping[str, list[dict[str, Any]]], now: datetime | None = None
) -> dict[str, Any]:
    """Give the belt after an edit; an entry whose key or name is new is added at the end.

    What of an agent is over by ``now`` is written down first, as by every writer; and what is set otherwise without a
    word on its end stands for good.
    """
    after = copy.deepcopy(dict(document))
    for section, changes in entries.items():
        known = after[section] = after.get(section) or []
        for change in changes:
            naming = "name" if "name" in change else "key"
            match = next((entry for entry in known if entry.get(naming) == change.get(naming)), None)
            if match is None:
                known.append(copy.deepcopy(change))
                continue
            if section == "agents" and isinstance(match.get("ends"), Mapping):
                _write_what_is_over(match, now)
                if "tools_config" in change and "ends" not in change:
                    match["ends"] = _still_ending(match, change["tools_config"] or {})
            match.update(copy.deepcopy(change))
    return after


def _write_what_is_over(entry: dict[str, Any], now: datetime | None) -> None:
    for key, end in list(entry["ends"].items()):
        at = grants.moment(end.get("at"))
        if now is not None and at is not None and at <= now:
            del entry["ends"][key]
            entry["tools_config"][key] = end.get("then")


def _still_ending(entry: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    had = entry.get("tools_config") or {}
    return {
        key: end
        for key, end in entry["ends"].items()
        if wanted.get(key) is not None and wanted[key] is had.get(key)
    }


def run(scenario: Mapping[str, Any], world: World) -> Iterator[Failure]:
    """Run one scenario in the world and give what did not come out as expected."""
    name = str(scenario.get("id", "(no id)"))
    lenient = scenario.get("lenient") is True
    wanted = scenario.get("expect_error")
    now = None
    try:
        now = _moment(scenario, None)
        with _at(world, now):
            world.load(scenario.get("belt", {}), lenient=lenient)
    except Exception as error:
        for expected, got in _refusal(wanted, error):
            yield Failure(scenario=name, step=0, expected=expected, got=got)
        return
    if wanted is not None:
        yield Failure(scenario=name, step=0, expected=f"an error at {_path(wanted)}", got="no error")
        return
    for number, step in enumerate(scenario.get("steps") or [], start=1):
        try:
            found = expectations.of_step(step)
            if not found:
                now = _moment(step, now)
                with _at(world, now):
                    found = list(_take(step, world, lenient))
            for expected, got in found:
                yield Failure(scenario=name, step=number, expected=expected, got=got)
        except Exception as error:
            # A crash is one scenario's failure, and no reason to leave the others unrun.
            yield Failure(scenario=name, step=number, expected="an answer", got=_said(error))


def _moment(said: Mapping[str, Any], before: datetime | None) -> datetime | None:
    """Read what moment it is from here on; where nothing is said, it stays the one ``before``."""
    if "now" not in said:
        return before
    if problem := expectations.of_now(said["now"]):
        raise errors.Invalid([errors.Problem(path="now", message=problem)])
    return expectations.moment(said["now"])


def _at(world: World, now: datetime | None) -> AbstractContextManager[None]:
    return contextlib.nullcontext() if now is None else world.at(now)


def _refusal(wanted: Any, error: Exception) -> Iterator[expectations.Mismatch]:
    if wanted is None:
        yield "a sound belt", _said(error)
    elif not isinstance(error, errors.Invalid) or _path(wanted) not in [one.path for one in error.problems]:
        yield f"an error at {_path(wanted)}", _said(error)


def _path(wanted: Any) -> Any:
    return wanted.get("path") if isinstance(wanted, Mapping) else wanted


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, errors.ToolbeltError) else repr(error)


def _take(step: Mapping[str, Any], world: World, lenient: bool) -> Iterator[expectations.Mismatch]:
    wanted = step.get("expect", {})
    match step:
        case {"edit": entries}:
            world.edit(entries, lenient=lenient)
        case {"surface": asked}:
            answer = world.surface(
                asked["agent"],
                asked.get("session"),
                asked.get("request_id"),
                asked.get("message"),
                asked.get("subagent"),
            )
            yield from expectations.of_surface(answer, wanted)
        case {"call": asked}:
            content = world.call(
                asked["agent"],
                asked.get("session"),
                asked.get("request_id"),
                asked["tool"],
                asked.get("arguments", {}),
                asked.get("subagent"),
            )
            yield from expectations.of_call(content, wanted)
