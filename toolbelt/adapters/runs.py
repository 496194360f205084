"""The common parts of the framework integrations: the tools of each step of a run, and results for the model.

Each step fetches the surface again, as a request of its own, and every outcome of a call is a result that the model
can read. Pure, except for the call itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.adapters.connection import protocol
from toolbelt.core import errors
from toolbelt.formats import surface

# The longest session id that the API accepts.
MAX_SESSION_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The input of the model in one step of a run: the surface's ``tools`` and ``policy``.

    ``first`` is the focus of a first step, if it has one. Its tools and its policy are those of the other steps, too:
    some providers lose their cache and the thinking that they preserve if tools or the system prompt change.
    """

    tools: tuple[Mapping[str, Any], ...]
    policy: str
    first: surface.FirstStep | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the tools, in order."""
        return tuple(str(tool["name"]) for tool in self.tools)

    @property
    def required(self) -> bool:
        """Return whether the model must call a tool."""
        return self.first is not None and self.first.required

    @property
    def only_tool(self) -> str | None:
        """Return the tool that must be called, if there is no choice."""
        return self.first.only_tool if self.first else None

    def said(self, *, is_forced: bool = False) -> str:
        """Return what to add to the conversation after the user's message, and to keep there; empty for nothing.

        ``is_forced``: the request forces a call, which need not be said then.
        """
        return self.first.text(is_forced=is_forced and self.required) if self.first else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of a call.

    ``content`` is the tool's result, or a refusal with ``code``, ``message`` and ``errors``. ``notice`` is what the
    model has to know beside it.
    """

    is_error: bool
    content: Mapping[str, Any]
    notice: str = ""

    @property
    def text(self) -> str:
        """Return the result as text for the model: a refusal in words, a string unchanged, anything else as JSON; and
        the notice.
        """
        return f"{self._text}\n\n{self.notice}" if self.notice else self._text

    @property
    def _text(self) -> str:
        if self.is_error:
            summary = f"{self.content['code']}: {self.content['message']}"
            details = (
                f"{error['path']}: {error['message']}" if error["path"] else error["message"]
                for error in self.content.get("errors", ())
            )
            # The message of a refusal contains the first of them.
            return "\n".join((summary, *(f"- {detail}" for detail in details if detail not in summary)))
        value = self.value
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    @property
    def value(self) -> Any:
        """Return the tool's own result: one that is not a mapping is stored under ``result``."""
        return self.content["result"] if self.content.keys() == {"result"} else self.content


def step(document: Mapping[str, Any]) -> Step:
    """Return the step that a surface's JSON document describes.

    Only a document that was requested with a message has a directive, so only a first step can have a focus.
    """
    content = surface.read(document, "rewrite")
    if not content.may_call:
        return Step(tools=(), policy=content.policy)
    return Step(tools=content.tools, policy=content.policy, first=content.first_step)


def check_names(step: Step, own_names: Iterable[str]) -> Step:
    """Return the step. Raise errors.Invalid if one of its tools has a name that is among ``own_names``."""
    shared = sorted({*step.names} & {*own_names})
    if shared:
        way_out = "Rename yours, or ask an operator to override Toolbelt's tool off for this agent."
        problems = [
            errors.Problem(path=f"tools.{name}", message=f"Two tools have this name. {way_out}")
            for name in shared
        ]
        raise errors.Invalid(problems)
    return step


def append_policy(text: str | None, policy: str) -> str:
    """Append the policy to a system prompt: the part that operators can change comes last, for prompt caches."""
    return "\n\n".join(part for part in (text, policy) if part)


def session(*parts: str | None) -> str | None:
    """Return a session id made from a framework's own ids; None if one is missing.

    An id that the API would not accept is hashed.
    """
    if not parts or not all(parts):
        return None
    name = "/".join(str(part) for part in parts)
    if len(name) <= MAX_SESSION_LENGTH and name.isprintable():
        return name
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()


def read(answer: Mapping[str, Any]) -> CallResult:
    """Return the result that a call's JSON document describes."""
    notice = answer.get("notice", "")
    if answer["is_error"]:
        content = {key: answer[key] for key in answer if key not in ("is_error", "notice")}
        return CallResult(is_error=True, content=content, notice=notice)
    return CallResult(is_error=False, content=answer["content"], notice=notice)


def failure(error: errors.ToolbeltError) -> CallResult:
    """Return a call that failed as a refusal, because it need not end the run."""
    return CallResult(is_error=True, content={"code": error.code, "message": str(error)})


def arguments(text: str) -> Any:
    """Return a call's arguments, parsed from JSON; empty text means no arguments. Raise errors.Invalid."""
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise errors.Invalid([errors.Problem(path="arguments", message=f"not JSON: {error}")]) from error


async def call(
    connection: protocol.Connection, run: protocol.Run, tool: str, args: Any, **more: str
) -> CallResult:
    """Call a tool, on an event loop. ``more`` is passed to the connection."""
    try:
        return read(await connection.call(run, tool, args, **more))
    except errors.ToolbeltError as error:
        return failure(error)


def blocking_call(
    connection: protocol.BlockingConnection, run: protocol.Run, tool: str, args: Any, **more: str
) -> CallResult:
    """Call a tool, in a thread that may block. ``more`` is passed to the connection."""
    try:
        return read(connection.call(run, tool, args, **more))
    except errors.ToolbeltError as error:
        return failure(error)
