"""What does a model's request take of a surface? (docs/reference/formats.md)

Reads the JSON document of a surface for the formats beside it, and holds it against what a provider takes. What a
provider does not take is an error that names each tool and the way out: nothing is cut, and no tool is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.adapters.json_schema import words
from toolbelt.core import errors, keys

MODES = ("rewrite",)
WAY_OUT = "Override the tool off for this agent, or have its provider change it."


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """What the first step of the request focuses on: the tools that may be called, and whether one must be.

    Toolbelt's own tools are always among ``names``. ``narrows``: there are others, which may not be called.
    """

    names: tuple[str, ...]
    narrows: bool
    required: bool

    @property
    def one(self) -> str | None:
        """Give the only tool that can be called, if one must be and there is no choice."""
        return self.names[0] if self.required and len(self.names) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The surface of one request: the active ``tools`` by name, and what else the model is sent.

    ``first_step`` is None where every step is like the others.
    """

    tools: tuple[Mapping[str, Any], ...]
    may_call: bool
    policy: str
    first_step: FirstStep | None

    @property
    def names(self) -> tuple[str, ...]:
        """Give the names of the active tools, in order."""
        return tuple(tool["name"] for tool in self.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a provider takes: names that match ``names``, ``most_tools`` of them (None: any number), and the schemas
    that ``say`` can put into its form (raising words.Inexpressible for others).
    """

    provider: str
    names: re.Pattern[str]
    say: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    most_tools: int | None = None


def read(document: Mapping[str, Any], mode: str) -> Surface:
    """Read a surface's JSON document. Raises errors.Invalid for a mode that is not known."""
    if mode not in MODES:
        known = " or ".join(MODES)
        raise errors.Invalid([errors.Problem(path="mode", message=f"{mode!r} is no mode: it is {known}.")])
    tools = tuple(sorted(document["tools"], key=lambda tool: str(tool["name"])))
    may_call = bool(tools) and document["tool_choice"] != "none"
    return Surface(
        tools=tools,
        may_call=may_call,
        policy=document["policy"]["text"],
        first_step=_first_step(document.get("directive"), tools) if may_call else None,
    )


def check(asked: Surface, limits: Limits) -> dict[str, Mapping[str, Any]]:
    """Hold a surface against what a provider takes; give each tool's schema in the provider's form, by name.

    Raises errors.ProviderLimit with everything that the provider does not take.
    """
    problems = []
    most = limits.most_tools
    if most is not None and len(asked.tools) > most:
        problems.append(errors.Problem(path="tools", message=_too_many(asked, limits.provider, most)))
    said: dict[str, Mapping[str, Any]] = {}
    for tool in asked.tools:
        name = tool["name"]
        if not limits.names.fullmatch(name):
            message = f"{limits.provider} takes names that match {limits.names.pattern}. {WAY_OUT}"
            problems.append(errors.Problem(path=f"tools.{name}.name", message=message))
        try:
            said[name] = limits.say(tool["input_schema"])
        except words.Inexpressible as error:
            problems.append(_unsaid(name, limits.provider, str(error)))
        except RecursionError:
            problems.append(_unsaid(name, limits.provider, "it is nested too deeply"))
    if problems:
        raise errors.ProviderLimit(limits.provider, problems)
    return said


def described(tool: Mapping[str, Any]) -> dict[str, str]:
    """Give the tool's description, if it has one: providers refuse a blank one."""
    return {"description": tool["description"]} if tool["description"].strip() else {}


def _first_step(
    directive: Mapping[str, Any] | None, tools: tuple[Mapping[str, Any], ...]
) -> FirstStep | None:
    if directive is None:
        return None
    active = [tool["name"] for tool in tools]
    focus = {*directive["active_tools"]}.intersection(active)
    if not focus:
        return None
    names = tuple(name for name in active if name in focus or name in keys.RESERVED)
    required, narrows = directive["tool_choice"] == "required", len(names) < len(active)
    return FirstStep(names=names, narrows=narrows, required=required) if required or narrows else None


def _too_many(asked: Surface, provider: str, most: int) -> str:
    own = len(keys.RESERVED.intersection(asked.names))
    beside = f", and {own} of Toolbelt's own come on top" if own else ""
    return (
        f"{len(asked.tools)} tools are active, and {provider} takes at most {most}. Turn some off, leave toolkits to "
        f"be loaded on demand, or give the agent a budget of {most - own} tools{beside}."
    )


def _unsaid(tool: str, provider: str, because: str) -> errors.Problem:
    message = f"{provider} does not take this schema, and no other form means the same: {because}. {WAY_OUT}"
    return errors.Problem(path=f"tools.{tool}.input_schema", message=message)
