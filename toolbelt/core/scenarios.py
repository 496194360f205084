"""Running scenarios: whether a configuration behaves as its scenarios expect (docs/how-to/test-your-configuration.md).

A scenario runs against a *world*: the core alone (:class:`CoreWorld`, which ``manage.py try`` uses), or anything else
that gives the same answers, such as the database through ``toolbelt.control`` and ``toolbelt.runtime``. Every world
must give the same answers.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from toolbelt.core import (
    admitting,
    agents,
    belt_edits,
    belts,
    call_approvals,
    declared_versions,
    errors,
    expectations,
    gate_rules,
    meta_tools,
    outcomes,
    request_key,
    scenario_format,
    schema,
    sessions,
    surface,
    tool_versions,
)
from toolbelt.core.rules import budgets, resolution

# The time of what is asked where a scenario sets none.
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_SECTIONS = {name: kind.section for name, kind in belts.KINDS.items() if name in budgets.SHARED_KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One expectation that was not met: ``step`` counts from 1, 0 is the belt."""

    scenario: str
    step: int
    expected: str
    got: str

    def __str__(self) -> str:
        where = f"step {self.step}" if self.step else "belt"
        return f"{self.scenario}: {where}: expected {self.expected}, got {self.got}"


class World(Protocol):
    """Something that loads a belt and answers. ``load`` and ``edit`` raise errors.Invalid if the result is not valid.
    Within ``at``, the time is ``now``. Within ``limited``, an identical call of a session may be repeated as often as
    said, where no rule says otherwise.
    """

    def at(self, now: datetime) -> AbstractContextManager[None]: ...

    def limited(self, identical_calls: int) -> AbstractContextManager[None]: ...

    def load(self, belt: Mapping[str, Any], *, lenient: bool) -> None: ...

    def edit(self, entries: Mapping[str, list[dict[str, Any]]], *, lenient: bool) -> None: ...

    def surface(self, key: request_key.RequestKey, message: str | None) -> surface.Surface: ...

    def call(self, key: request_key.RequestKey, tool: str, arguments: Any) -> Mapping[str, Any]: ...

    def decide(self, agent: str, tool: str, by: str, note: str | None) -> None:
        """Approve the call of this agent and tool that was asked about last; with a note, reject it."""
        ...


class CoreWorld:
    """The core alone: no database, no clock; a tool that is admitted answers ``is_error: false``.

    Switches, overrides and blocks expire only within :meth:`at`, because there is no time outside it.
    """

    def __init__(
        self,
        *,
        count_tokens: Callable[[str], int] | None = None,
        kind_loadouts: Mapping[str, str] = agents.KIND_LOADOUTS,
        identical_calls: int = 0,
    ) -> None:
        self._count_tokens = count_tokens
        self._kind_loadouts = kind_loadouts
        self._identical_calls = identical_calls
        self._document: dict[str, Any] = {}
        self._belt: belts.Belt | None = None
        self._sessions: dict[tuple[str, str], sessions.Session] = {}
        # By what they are for, the one that was asked last at the end.
        self._approvals: dict[str, call_approvals.Approval] = {}
        # What rules counted, by the rule, whose calls, and when they are counted again.
        self._counts: Counter[tuple[str, str, datetime]] = Counter()
        self._now: datetime | None = None

    @contextlib.contextmanager
    def at(self, now: datetime) -> Iterator[None]:
        """Set the time within the block."""
        before, self._now = self._now, now
        try:
            yield
        finally:
            self._now = before

    @contextlib.contextmanager
    def limited(self, identical_calls: int) -> Iterator[None]:
        """Set the limit on identical calls within the block."""
        before, self._identical_calls = self._identical_calls, identical_calls
        try:
            yield
        finally:
            self._identical_calls = before

    def load(self, belt: Mapping[str, Any], *, lenient: bool) -> None:
        """Load a whole configuration and discard all sessions."""
        self._document = copy.deepcopy(dict(belt))
        self._belt = self._read(lenient)
        self._sessions, self._approvals = {}, {}
        self._counts.clear()

    def edit(self, entries: Mapping[str, list[dict[str, Any]]], *, lenient: bool) -> None:
        """Merge each entry into the existing entry with the same key or name.

        Raise errors.Refused if an agent would exceed a budget that refuses.
        """
        document, before = self._document, self._belt
        self._document = belt_edits.apply_edit(document, entries, self._now)
        try:
            self._belt = self._read(lenient)
            if before is not None and not lenient:
                self._check_budgets(before, self._belt, entries)
        except errors.ToolbeltError:
            self._document, self._belt = document, before
            raise

    def surface(self, key: request_key.RequestKey, message: str | None) -> surface.Surface:
        """Return the surface for a request."""
        return surface.build(self._snapshot(key), message)

    def call(self, key: request_key.RequestKey, tool: str, arguments: Any) -> Mapping[str, Any]:
        """Call a tool: meta-tools run, other tools are only admitted."""
        snapshot = self._snapshot(key)
        resolved = budgets.resolve(snapshot)
        if tool not in meta_tools.DEFINITIONS:
            answer = admitting.admit(resolved, tool, arguments, past=self._past(key, tool), at=self._now)
            if isinstance(answer, admitting.Refusal) and answer.code == outcomes.PENDING:
                answer = self._asked(snapshot, key, tool, arguments, answer)
            if isinstance(answer, admitting.Refusal):
                return answer.document()
            self._note(key, tool, answer)
            return {"is_error": False}
        meta_answer = admitting.meta(resolved, snapshot, tool, arguments)
        if isinstance(meta_answer, admitting.Refusal):
            return meta_answer.document()
        if meta_answer.session is not None and key.session is not None:
            self._sessions[key.agent, key.session] = meta_answer.session
        return {"is_error": False, **meta_answer.content}

    def _past(self, key: request_key.RequestKey, tool: str) -> gate_rules.Past:
        """Return what came before a call."""
        session = self._sessions.get((key.agent, key.session)) if key.session is not None else None
        return gate_rules.Past(
            labels=None if key.session is None else sessions.label_names(session),
            count=lambda count: self._counts[self._counted(count)],
            identity=lambda arguments: schema.comparable([key.session, key.subagent, tool, arguments]),
            session=key.session or "",
            breaker=gate_rules.breaker(self._identical_calls)
            if key.session and self._identical_calls
            else None,
        )

    def _counted(self, count: gate_rules.Count) -> tuple[str, str, datetime]:
        return count.rule.key, count.subject, count.limit.resets(self._now or _LONG_AGO)

    def _note(self, key: request_key.RequestKey, tool: str, admission: admitting.Admission) -> None:
        """Count a call that runs, and label its session."""
        self._counts.update(map(self._counted, admission.counts))
        if key.session is not None and admission.brings:
            session = self._sessions.get((key.agent, key.session)) or sessions.Session(key=key.session)
            labeled = sessions.with_labels(session, admission.brings, tool)
            self._sessions[key.agent, key.session] = labeled or session

    def decide(self, agent: str, tool: str, by: str, note: str | None) -> None:
        """Approve the call of this agent and tool that was asked about last; with a note, reject it."""
        asked = [
            (binding, each)
            for binding, each in self._approvals.items()
            if (each.agent, each.tool) == (agent, tool)
        ]
        if not asked:
            raise errors.NotFound("approval", f"{agent} {tool}")
        (binding, approval), at = asked[-1], self._now or _LONG_AGO
        if note is None:
            self._approvals[binding] = call_approvals.approve(approval, by, at)
        else:
            self._approvals[binding] = call_approvals.reject(approval, by, at, note)

    def _asked(
        self,
        snapshot: resolution.Snapshot,
        key: request_key.RequestKey,
        tool: str,
        arguments: Any,
        refusal: admitting.Refusal,
    ) -> admitting.Admission | admitting.Refusal:
        """Answer a call that rules ask about, by what people decided."""
        judgement, now, definition = refusal.judgement, self._now or _LONG_AGO, snapshot.catalog.tools[tool]
        version = tool_versions.version(declared_versions.offered(definition))
        binding = call_approvals.binding(
            key, "", definition, version, refusal.options, arguments, judgement.asked_by
        )
        found = self._approvals.get(binding)
        match call_approvals.answer(found, now), found:
            case "run", call_approvals.Approval():
                self._approvals[binding] = call_approvals.moved(found, "spent", spent=now)
                return admitting.admit(
                    budgets.resolve(snapshot),
                    tool,
                    arguments,
                    past=self._past(key, tool),
                    at=self._now,
                    approval=found,
                )
            case "rejected", call_approvals.Approval():
                return admitting.rejected(found, judgement)
            case "expired", call_approvals.Approval():
                self._approvals[binding] = call_approvals.moved(found, "expired")
                return admitting.expired(found, judgement)
            case "ask", _:
                added = call_approvals.request(key, tool, judgement.asked_by, arguments, now)
                others = [each for each in self._approvals.values() if each.state_at(now) == "pending"]
                if call_approvals.is_full(others, added):
                    return admitting.too_many_approvals(tool, judgement)
                self._approvals.pop(binding, None)
                self._approvals[binding] = added
        return admitting.pending(self._approvals[binding], judgement)

    def _check_budgets(
        self, before: belts.Belt, after: belts.Belt, entries: Mapping[str, list[dict[str, Any]]]
    ) -> None:
        """Check the budgets of the agents that are written, or of all agents if something that they share is."""
        written = {entry.get("key") for entry in entries.get("agents", ())}
        old, new = belts.dump(before), belts.dump(after)
        affects_all = any(
            budgets.concerns_all_agents(kind, belt_edits.changed_fields(old, new, section))
            for kind, section in _SECTIONS.items()
        )
        for name, agent in after.agents.items():
            is_checked = name in written or (affects_all and not agent.archived)
            if is_checked and budgets.refuses(self._spent(before, name), self._spent(after, name)):
                raise errors.Refused(f"The budget of {name} refuses this edit, which would exceed it.")

    def _spent(self, belt: belts.Belt, agent: str) -> budgets.Spent:
        """Return the active tools of an agent outside any session; none if it does not exist."""
        if agent not in belt.agents:
            return budgets.Spent(tools=0, tokens=0)
        return budgets.resolve(self._snapshot_of(belt, belt.agents[agent])).spent

    def _snapshot_of(self, belt: belts.Belt, consumer: agents.Agent, **request: Any) -> resolution.Snapshot:
        return resolution.Snapshot(
            catalog=belt.catalog if self._now is None else belt.catalog.as_of(self._now),
            agent=consumer if self._now is None else consumer.as_of(self._now),
            kind_loadouts=self._kind_loadouts,
            **request,
        )

    def _read(self, lenient: bool) -> belts.Belt:
        return belts.load(self._document, count_tokens=self._count_tokens, lenient=lenient)

    def _snapshot(self, key: request_key.RequestKey) -> resolution.Snapshot:
        if self._belt is None or key.agent not in self._belt.agents:
            raise errors.NotFound("agent", key.agent, self._belt.agents if self._belt else ())
        if key.subagent is not None and key.subagent not in agents.KINDS:
            raise errors.NotFound("kind of agent", key.subagent, agents.KINDS)
        consumer = self._belt.agents[key.agent]
        if consumer.archived:
            raise errors.Archived(key.agent)
        stored_session = None
        if key.session is not None:
            stored_session = self._sessions.get((key.agent, key.session)) or sessions.Session(key=key.session)
        return self._snapshot_of(
            self._belt,
            consumer,
            session=stored_session,
            request_id=key.request_id,
            subagent=key.subagent,
        )


def run(scenario: Mapping[str, Any], world: World) -> Iterator[Failure]:
    """Run one scenario and yield what was not as expected. A scenario that expects nothing fails as well."""
    failed = False
    identical_calls = scenario.get("identical_calls")
    is_limited = isinstance(identical_calls, int) and identical_calls >= 0
    with world.limited(int(identical_calls or 0)) if is_limited else contextlib.nullcontext():
        for failure in _run(scenario, world):
            failed = True
            yield failure
    if not failed and not scenario_format.expects_something(scenario):
        expected = "an expectation, of a step or of the belt (expect_error)"
        yield Failure(scenario=str(scenario["id"]), step=0, expected=expected, got="none")


def _run(scenario: Mapping[str, Any], world: World) -> Iterator[Failure]:
    name = str(scenario.get("id", "(no id)"))
    mismatches = list(scenario_format.of_scenario(scenario))
    for expected, got in mismatches:
        yield Failure(scenario=name, step=0, expected=expected, got=got)
    if mismatches:
        return
    lenient = scenario.get("lenient") is True
    expected_error = scenario.get("expect_error")
    now = _time_of(scenario, None)
    try:
        with _at(world, now):
            world.load(scenario["belt"], lenient=lenient)
    except Exception as error:
        for expected, got in _refusal(expected_error, error):
            yield Failure(scenario=name, step=0, expected=expected, got=got)
        return
    if expected_error is not None:
        yield Failure(scenario=name, step=0, expected=f"an error at {_path(expected_error)}", got="no error")
        return
    for number, step in enumerate(scenario.get("steps") or [], start=1):
        try:
            mismatches_ = scenario_format.of_step(step)
            if not mismatches_:
                now = _time_of(step, now)
                with _at(world, now):
                    mismatches_ = list(_take(step, world, lenient))
            for expected, got in mismatches_:
                yield Failure(scenario=name, step=number, expected=expected, got=got)
        except Exception as error:
            # A crash fails one scenario; the others still run.
            yield Failure(scenario=name, step=number, expected="an answer", got=_described(error))


def _time_of(section: Mapping[str, Any], before: datetime | None) -> datetime | None:
    """Return the time that a scenario or step sets; ``before`` if it sets none."""
    return scenario_format.parse_time(section["now"]) if "now" in section else before


def _at(world: World, now: datetime | None) -> AbstractContextManager[None]:
    return contextlib.nullcontext() if now is None else world.at(now)


def _refusal(expected: Any, error: Exception) -> Iterator[expectations.Mismatch]:
    if expected is None:
        yield "a valid belt", _described(error)
    elif not isinstance(error, errors.Invalid) or _path(expected) not in [
        problem.path for problem in error.problems
    ]:
        yield f"an error at {_path(expected)}", _described(error)


def _path(expected: Any) -> Any:
    return expected.get("path") if isinstance(expected, Mapping) else expected


def _described(error: Exception) -> str:
    return str(error) if isinstance(error, errors.ToolbeltError) else repr(error)


def _key(parameters: Mapping[str, Any]) -> request_key.RequestKey:
    return request_key.RequestKey(
        **{name: parameters[name] for name in request_key.RequestKey._fields if name in parameters}
    )


def _take(step: Mapping[str, Any], world: World, lenient: bool) -> Iterator[expectations.Mismatch]:
    expected = step.get("expect", {})
    match step:
        case {"edit": entries}:
            world.edit(entries, lenient=lenient)
        case {"approve": parameters}:
            world.decide(parameters["agent"], parameters["tool"], parameters.get("by", "olive"), None)
        case {"reject": parameters}:
            note = parameters.get("note", "")
            world.decide(parameters["agent"], parameters["tool"], parameters.get("by", "olive"), note)
        case {"surface": parameters}:
            answer = world.surface(_key(parameters), parameters.get("message"))
            yield from expectations.of_surface(answer, expected)
        case {"call": parameters}:
            content = world.call(_key(parameters), parameters["tool"], parameters.get("arguments", {}))
            yield from expectations.of_call(content, expected)
