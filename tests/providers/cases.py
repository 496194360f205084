"""What happens to running conversations of the demo's assistant: directives, loads, and changes by operators.

Each case runs with the provider's own SDK against a strict fake, in two ways: with a conversation, to which changes are
appended, or with the whole surface of each step, which rewrites the start of every request.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.providers import soak
from toolbelt.adapters import plain
from toolbelt.adapters.connection import protocol

Way = Literal["appended", "rewritten"]

AGENT = "assistant"
SYSTEM = "You are the assistant."
HELLO = ("hello", "hello again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case: what the user says, and what an operator changes in between: (kind, key, value)."""

    says: tuple[str, ...] = HELLO
    change: tuple[Literal["switch", "policy"], str, Any] | None = None


CASES: dict[str, Case] = {
    "nothing changes": Case(),
    "a directive requires a call": Case(says=('call arxiv {"query": "graphs"}',)),
    "a directive has a focus": Case(says=('call duckduckgo {"query": "look up who is Ada Lovelace"}',)),
    "the agent loads a toolkit": Case(says=('call load_tools {"toolkit": "devops"}',)),
    "an operator turns a toolkit off": Case(change=("switch", "knowledge_base", False)),
    "an operator turns a toolkit on": Case(change=("switch", "database_write", True)),
    "an operator edits a policy": Case(
        change=("policy", "knowledge_base", "Cite what you found: {active_tools}.")
    ),
}


@dataclass
class Outcome:
    """The requests of a conversation: how many bytes each has, and how many of them the provider had not read before.

    refused: What the provider said to the request that it refused; empty if it refused none.
    """

    bytes: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    refused: str = ""
    entries: list[Mapping[str, Any]] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)

    def note(self, parameters: Mapping[str, Any]) -> None:
        """Note a request. A provider reads what is equal from the beginning to an earlier request, from its cache."""
        text, is_read, read, total = "", True, 0, 0
        for part in _parts(parameters):
            text, size = f"{text}\0{part}", len(part.encode())
            is_read = is_read and text in self._read
            self._read.add(text)
            total, read = total + size, read + size * is_read
        self.bytes.append(total)
        self.written.append(total - read)


def run(
    case: Case,
    connection: Any,
    service: soak.Service,
    model: str,
    way: Way,
    change: Callable[[tuple[str, str, Any]], None],
) -> Outcome:
    """Run a case. ``change`` applies a change of an operator's."""
    outcome, toolbelt = Outcome(), plain.Toolbelt(connection, model=model)
    session, messages, first = uuid.uuid4().hex, list[Any](), len(service.server.log)
    talk = toolbelt.conversation(service.form, model=model, system=SYSTEM)
    for number, text in enumerate(case.says):
        if number and case.change:
            change(case.change)
        messages.append(service.say(text))
        begun: Any = (talk if way == "appended" else toolbelt).begin(text, session)
        while True:
            step = begun.ask(messages) if way == "appended" else None
            parameters = step.parameters if step else _whole(service.form, begun.step(service.form), messages)
            outcome.note(parameters)
            try:
                items, calls = service.send(model, parameters)
            except soak.BAD_REQUESTS:
                outcome.refused = service.server.log[-1]["message"]
                outcome.entries = service.server.log[first:]
                return outcome
            if step:
                step.answered()
            messages += items
            if not calls:
                break
            results = [
                (call, name, begun.call(name, arguments).text[:200]) for call, name, arguments in calls
            ]
            messages += service.results(results)
    outcome.entries = service.server.log[first:]
    return outcome


def _whole(form: str, step: plain.Step, messages: list[Any]) -> dict[str, Any]:
    """Return the parameters of a request that has the whole surface of the step."""
    parameters, system = dict(step.parameters), step.system(SYSTEM)
    # What states a focus stays where it was said.
    messages += step.messages
    match form:
        case "anthropic":
            return {**parameters, "system": system, "messages": messages}
        case "openai_responses":
            return {**parameters, "instructions": system, "input": messages}
        case "gemini":
            return {"contents": messages, "config": {**parameters, "system_instruction": system}}
    return {**parameters, "messages": [{"role": "system", "content": system}, *messages]}


def _parts(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Return what a model reads of a request, in the order in which it does: the tools, the system prompt, messages."""
    config = parameters.get("config", parameters)
    system = [config[name] for name in ("system", "instructions", "system_instruction") if name in config]
    messages = next(parameters[name] for name in ("messages", "input", "contents") if name in parameters)
    for part in (config.get("tools", []), *system, *messages):
        yield json.dumps(part, ensure_ascii=False, default=str)


def connection() -> protocol.Connection:
    """Return a connection of the demo's assistant, in this process."""
    from toolbelt.runtime import connection as local

    return local.Local(AGENT)


def apply(change: tuple[str, str, Any]) -> None:
    """Apply a change, as an operator does."""
    from toolbelt.control import writing
    from toolbelt.control.access import switches
    from toolbelt.control.catalog import entries

    kind, key, value = change
    write = dataclasses.replace(writing.by("olga", "api"), confirm=True)
    if kind == "switch":
        switches.flip(write, AGENT, key, value)
    else:
        entries.change(write, "toolkit", key, {"policy": value})
