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
    edits,
    errors,
    expectations,
    meta_tools,
    resolution,
    scenario_format,
    sessions,
    surface,
)

_SECTIONS = {kind: spoken.section for kind, spoken in belts.KINDS.items() if kind in budgets.SHARED}


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
        """Replace the keys that each entry names in the entry of the same key or name.

        Raises errors.Refused, too, where an agent would pass a budget that refuses.
        """
        document, before = self._document, self._belt
        self._document = edits.edited(document, entries, self._now)
        try:
            self._belt = self._read(lenient)
            if before is not None and not lenient:
                self._hold_to_budgets(before, self._belt, entries)
        except errors.ToolbeltError:
            self._document, self._belt = document, before
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

    def _hold_to_budgets(
        self, before: belts.Belt, after: belts.Belt, entries: Mapping[str, list[dict[str, Any]]]
    ) -> None:
        """Hold those agents to their budgets that are written, and all of them where something that they share is."""
        written = {one.get("key") for one in entries.get("agents", ())}
        was, now = belts.dump(before), belts.dump(after)
        reaches_all = any(budgets.hold(one, edits.changed(was, now, _SECTIONS[one])) for one in _SECTIONS)
        for name, agent in after.agents.items():
            is_held = name in written or (reaches_all and not agent.archived)
            if is_held and budgets.refuses(self._spent(before, name), self._spent(after, name)):
                raise errors.Refused(f"The budget of {name} refuses this edit, which would pass it.")

    def _spent(self, belt: belts.Belt, agent: str) -> budgets.Spent:
        """Say what an agent has active outside any session: nothing, where it is not there."""
        if agent not in belt.agents:
            return budgets.Spent(tools=0, tokens=0)
        return budgets.resolve(self._asking(belt, belt.agents[agent])).spent

    def _asking(self, belt: belts.Belt, consumer: agents.Agent, **said: Any) -> resolution.Snapshot:
        return resolution.Snapshot(
            catalog=belt.catalog,
            agent=consumer if self._now is None else consumer.standing(self._now),
            kind_loadouts=self._kind_loadouts,
            **said,
        )

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
        if consumer.archived:
            raise errors.Archived(agent)
        held = None
        if session is not None:
            held = self._sessions.get((agent, session)) or sessions.Session(key=session)
        return self._asking(self._belt, consumer, session=held, request_id=request_id, subagent=subagent)


def run(scenario: Mapping[str, Any], world: World) -> Iterator[Failure]:
    """Run one scenario in the world and give what did not come out as expected. One that expects nothing fails, too."""
    failed = False
    for failure in _run(scenario, world):
        failed = True
        yield failure
    if not failed and not scenario_format.expects_something(scenario):
        expected = "an expectation, of a step or of the belt (expect_error)"
        yield Failure(scenario=str(scenario["id"]), step=0, expected=expected, got="none")


def _run(scenario: Mapping[str, Any], world: World) -> Iterator[Failure]:
    name = str(scenario.get("id", "(no id)"))
    unfit = list(scenario_format.of_scenario(scenario))
    for expected, got in unfit:
        yield Failure(scenario=name, step=0, expected=expected, got=got)
    if unfit:
        return
    lenient = scenario.get("lenient") is True
    wanted = scenario.get("expect_error")
    now = _moment(scenario, None)
    try:
        with _at(world, now):
            world.load(scenario["belt"], lenient=lenient)
    except Exception as error:
        for expected, got in _refusal(wanted, error):
            yield Failure(scenario=name, step=0, expected=expected, got=got)
        return
    if wanted is not None:
        yield Failure(scenario=name, step=0, expected=f"an error at {_path(wanted)}", got="no error")
        return
    for number, step in enumerate(scenario.get("steps") or [], start=1):
        try:
            found = scenario_format.of_step(step)
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
    return scenario_format.moment(said["now"]) if "now" in said else before


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
