"""The calls of the demo's month: which agents make, and how each passes the gate at its time.

Everything but the tool is real: the gate reads what is configured at that moment and decides, sessions load toolkits,
and each call is recorded with its facts. What the tool would have done is generated, because it would take too long.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.control.access import access_index
from toolbelt.core import admitting, dispatch, meta_tools, request_key, schema
from toolbelt.demo import plugins as demo_plugins
from toolbelt.runtime.calls import admissions, arrival, gates, incoming, own_tools

# How likely a call is at each hour.
_HOURS = (1, 1, 1, 1, 1, 2, 4, 8, 14, 18, 19, 18, 13, 16, 19, 19, 17, 13, 8, 6, 5, 4, 2, 1)
_FAILURES: Sequence[tuple[admissions.Outcome, str]] = (
    ("tool-failed", "The server answered 502."),
    ("tool-failed", "Rate limit exceeded, try again in 40 s."),
    ("timed-out", "No answer within 30 s."),
)
# What schemas with a pattern ask for.
_EXAMPLES = ("en", "OPS", "OPS-17", "notes/roadmap.md", "s3://reports/week.csv")
_INVENTED = ("create_pull_request", "send_email", "python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the tool ends if its call is admitted: the outcome, the error, the seconds and the size of the result."""

    outcome: admissions.Outcome = "ok"
    error: str = ""
    seconds: float = 0.0
    result_bytes: int = 0
    # Whether the plugin of the tool does not answer.
    is_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call at its time. ``by_dispatch``: the model has ``call_tool``."""

    at: dt.datetime
    key: request_key.RequestKey
    tool: str
    arguments: Any
    ending: Ending
    by_dispatch: bool = False

    def make(self) -> None:
        """Make the call, and record it."""
        name, arguments = self.tool, self.arguments
        if self.by_dispatch:
            name, arguments = meta_tools.CALL, {"tool": name, "arguments": arguments}
        call = incoming.Call(key=self.key, tool=name, arguments=arguments, by_dispatch=self.by_dispatch)
        gate = gates.CallGate(call)
        recording, ending = gate.recording, self.ending
        if name == meta_tools.LOAD:
            answer = own_tools.call(self.key, name, arguments, recording)
            outcome = answer.code if isinstance(answer, admitting.Refusal) else "ok"
            recording.end(outcome, seconds=0.004, result_bytes=200)
            return
        snapshot, resolved, _ = gate.resolve()
        tool = snapshot.catalog.tools.get(self.tool)
        if tool is not None and not self.by_dispatch and snapshot.catalog.runner(tool) == "client":
            self._have_admitted(call)
            return
        if self.by_dispatch:
            parsed = dispatch.parse_call(resolved, arguments, is_offered=True)
            if isinstance(parsed, admitting.Refusal):
                recording.end(parsed.code, error=parsed.without_values(), seconds=0.001)
                return
            recording.tool, recording.arguments = parsed
            recording.is_dispatched = True
        arrival.note_tool(gate, snapshot, resolved)
        decided = gate.admit(resolved, snapshot)
        if isinstance(decided, admitting.Refusal):
            recording.end(
                decided.code, error=recording.reason_text or decided.without_values(), seconds=0.001
            )
        elif ending.is_down:
            error = f"The plugin {recording.plugin} does not answer."
            recording.end("tool-unavailable", error=error, seconds=0)
        else:
            recording.end(
                ending.outcome, error=ending.error, seconds=ending.seconds, result_bytes=ending.result_bytes
            )

    def _have_admitted(self, call: incoming.Call) -> None:
        """Have the call admitted, and report it as the agent's program does."""
        answer = admissions.admit(call)
        if isinstance(answer, admissions.Admission):
            admissions.report(
                self.key.agent,
                answer.call_id,
                self.ending.outcome,
                error=self.ending.error,
                duration_ms=round(self.ending.seconds * 1000),
                result_bytes=self.ending.result_bytes,
            )


@dataclass(frozen=True, slots=True)
class _Caller:
    """An agent, with the tools that it uses, the most frequent first; it may load ``toolkits``, and is denied, or not
    granted, ``others``.
    """

    access: access_index.AgentAccess
    favourites: Sequence[str]
    toolkits: Sequence[str]
    others: Sequence[str]


def plan(
    index: access_index.AccessIndex,
    dice: random.Random,
    midnights: Sequence[dt.datetime],
    now: dt.datetime,
    size: int,
) -> Iterator[Call]:
    """Yield the calls of these days: more on weekdays and in the daytime, and more from week to week."""
    callers = [_caller(access, dice) for access in index.agents if access.active]
    if not callers:
        return
    # Some agents make more calls than others.
    weights = [dice.uniform(0.3, 1.7) for _ in callers]
    # On one day, the plugin that most agents depend on is down.
    down_at = midnights[len(midnights) * 2 // 3] if len(midnights) > 3 else None
    plugins = sorted(index.catalog.tools[tool].plugin for caller in callers for tool in caller.favourites)
    down = statistics.mode(filter(None, plugins)) if any(plugins) else ""
    for number, midnight in enumerate(midnights, 1):
        share = 0.25 if midnight.weekday() > 4 else 1.0
        count = round(size * share * (0.55 + 0.45 * number / len(midnights)) * dice.uniform(0.8, 1.15))
        for caller in dice.choices(callers, weights, k=count):
            hour: int = dice.choices(range(24), _HOURS)[0]
            at = midnight + dt.timedelta(hours=hour, seconds=dice.randrange(3600))
            calls = _calls(dice, caller, at, down if midnight == down_at else "")
            yield from (call for call in calls if call.at < now)


def _caller(access: access_index.AgentAccess, dice: random.Random) -> _Caller:
    active = sorted(access.active)
    return _Caller(
        access=access,
        favourites=dice.sample(active, min(10, len(active))),
        toolkits=[key for key in access.agent.allowed_toolkits if key in access.catalog.toolkits],
        others=sorted(set(access.catalog.tools) - access.active),
    )


def _calls(dice: random.Random, caller: _Caller, at: dt.datetime, down: str) -> Iterator[Call]:
    """Yield a call; some are two: the first one loads the toolkit of the second one's tool."""
    agent, stored = caller.access.agent, caller.access.catalog
    session = f"chat-{at:%m%d}-{dice.randrange(1, 9)}"
    request = f"{session}-{dice.randrange(1, 40)}"
    tool = caller.favourites[min(int(dice.expovariate(0.32)), len(caller.favourites) - 1)]
    chance, subagent, by_dispatch = dice.random(), None, False
    if chance < 0.008:
        tool = dice.choice(_INVENTED)
    elif chance < 0.02 and caller.others:
        tool = dice.choice(caller.others)
    elif chance < 0.06 and caller.toolkits:
        toolkit = stored.toolkits[dice.choice(caller.toolkits)]
        by_dispatch = dice.random() < 0.3
        if toolkit.members:
            tool = dice.choice(toolkit.members).tool
        if not by_dispatch:
            key = request_key.RequestKey(agent.key, session, f"{request}.load")
            arguments = {"toolkit": toolkit.key}
            yield Call(at=at, key=key, tool=meta_tools.LOAD, arguments=arguments, ending=Ending())
            at += dt.timedelta(seconds=2)
    elif chance < 0.08 and agent.subagent_kinds:
        subagent = dice.choice(agent.subagent_kinds)
    definition = stored.tools.get(tool)
    takes = schema.mapping(definition.input_schema, {}) if definition is not None else {}
    yield Call(
        at=at,
        key=request_key.RequestKey(agent.key, session, request, subagent),
        tool=tool,
        arguments=_arguments(dice, takes),
        ending=_ending(dice, bool(down) and definition is not None and definition.plugin == down),
        by_dispatch=by_dispatch,
    )


def _arguments(dice: random.Random, takes: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments that fit the schema, unless it is an unusual one; a few lack what it requires."""
    required: Collection[str] = takes.get("required", ())
    arguments = {
        name: _example(property_["pattern"])
        if "pattern" in property_
        else demo_plugins.sample(property_, takes, name)
        for name, property_ in takes.get("properties", {}).items()
        if name in required or (dice.random() < 0.3 and "pattern" not in property_)
    }
    if required and dice.random() < 0.008:
        del arguments[min(required)]
    return arguments


def _example(pattern: str) -> str:
    return next((text for text in _EXAMPLES if re.search(pattern, text)), _EXAMPLES[0])


def _ending(dice: random.Random, is_down: bool) -> Ending:
    seconds = max(1, round(dice.lognormvariate(5.4, 1.0))) / 1000
    if dice.random() < 0.02:
        outcome, error = dice.choice(_FAILURES)
        return Ending(outcome=outcome, error=error, seconds=30.0 if outcome == "timed-out" else seconds)
    return Ending(
        seconds=seconds,
        result_bytes=int(dice.lognormvariate(7.5, 1.1)),
        is_down=is_down and dice.random() < 0.7,
    )
