"""What does the client of a framework ask in each step of a run, and what does the model read of a call?

The parts that the clients have in common, whatever their framework: a run is one request, each step asks anew, and
whatever a call comes to is an answer that the model can read. Pure, but for the call itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.adapters import surface
from toolbelt.adapters.connection import protocol
from toolbelt.core import errors

# What the API takes as the id of a session.
LONGEST_SESSION = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step of a run is sent: ``tools`` as the surface has them, the ``policy``, and whether to call one.

    In a first step that focuses on some tools, those and Toolbelt's own are all there is.
    """

    tools: tuple[Mapping[str, Any], ...]
    policy: str
    required: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Give the names of the tools, in order."""
        return tuple(str(tool["name"]) for tool in self.tools)

    @property
    def one(self) -> str | None:
        """Give the only tool that can be called, if one must be."""
        return self.names[0] if self.required and len(self.tools) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a call came to. ``content`` is the tool's answer, or a refusal with ``code``, ``message`` and ``errors``."""

    is_error: bool
    content: Mapping[str, Any]

    @property
    def text(self) -> str:
        """Give what the model reads: a refusal in words, a text as it is, and all else as JSON."""
        if self.is_error:
            words = f"{self.content['code']}: {self.content['message']}"
            places = (f"- {one['path']}: {one['message']}" for one in self.content.get("errors", ()))
            return "\n".join((words, *places))
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)

    @property
    def value(self) -> Any:
        """Give a tool's answer as the tool gave it: what is no mapping came under ``result``."""
        return self.content["result"] if self.content.keys() == {"result"} else self.content


def step(document: Mapping[str, Any]) -> Step:
    """Read what a step is sent from a surface's JSON document.

    The document of a question without a message has no directive, and so only a first step focuses.
    """
    asked = surface.read(document, "rewrite")
    first = asked.first_step
    if not asked.may_call:
        return Step(tools=(), policy=asked.policy)
    if first is None:
        return Step(tools=asked.tools, policy=asked.policy)
    tools = tuple(tool for tool in asked.tools if tool["name"] in first.names)
    return Step(tools=tools, policy=asked.policy, required=first.required)


def beside(step: Step, own: Iterable[str]) -> Step:
    """Give the step, if no tool in it has the name of one of the program's ``own``; else raise errors.Invalid."""
    taken = sorted({*step.names} & {*own})
    if taken:
        way_out = "Rename yours, or have an operator override Toolbelt's off for this agent."
        said = [
            errors.Problem(path=f"tools.{name}", message=f"Two tools have this name. {way_out}")
            for name in taken
        ]
        raise errors.Invalid(said)
    return step


def joined(text: str | None, policy: str) -> str:
    """Put the policy behind a system prompt, so that what an operator can change stands last."""
    return "\n\n".join(part for part in (text, policy) if part)


def session(*parts: str | None) -> str | None:
    """Name a session after a framework's own ids; None where one is missing.

    A name that the API does not take is hashed.
    """
    if not parts or not all(parts):
        return None
    name = "/".join(str(part) for part in parts)
    if len(name) <= LONGEST_SESSION and name.isprintable():
        return name
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()


def read(answer: Mapping[str, Any]) -> Told:
    """Read what a call came to from its JSON document."""
    if answer["is_error"]:
        return Told(is_error=True, content={key: answer[key] for key in answer if key != "is_error"})
    return Told(is_error=False, content=answer["content"])


def lost(error: errors.ToolbeltError) -> Told:
    """Say why there is no answer to a call in the form of a refusal: a call that was lost is no reason to end a run."""
    return Told(is_error=True, content={"code": error.code, "message": str(error)})


def arguments(text: str) -> Any:
    """Read a call's arguments from JSON. Raises errors.Invalid where they are none; no text at all means: none."""
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise errors.Invalid([errors.Problem(path="arguments", message=f"not JSON: {error}")]) from error


async def call(connection: protocol.Connection, run: protocol.Run, tool: str, given: Any) -> Told:
    """Call a tool, from an event loop."""
    try:
        return read(await connection.call(run, tool, given))
    except errors.ToolbeltError as error:
        return lost(error)


def blocking_call(connection: protocol.BlockingConnection, run: protocol.Run, tool: str, given: Any) -> Told:
    """Call a tool, from a thread that may block."""
    try:
        return read(connection.call(run, tool, given))
    except errors.ToolbeltError as error:
        return lost(error)
