"""Reading of surface documents for the formats, and checks against providers' limits. (docs/reference/formats.md)

If a provider does not accept something, the error names each tool and what to do: nothing is cut, and no tool is left
out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.core import errors, keys, schema_drafts
from toolbelt.formats import profiles
from toolbelt.formats.json_schema import keywords, patterns

MODES = ("rewrite",)
WAY_OUT = "Override the tool off for this agent, or have its provider change it."


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """The focus of a request's first step: the tools that may be called, and whether one of them must be.

    ``names`` always includes the meta-tools. ``narrows``: there are other tools, which may not be called.
    """

    names: tuple[str, ...]
    narrows: bool
    required: bool

    @property
    def only_tool(self) -> str | None:
        """Return the tool that must be called, if there is no choice."""
        return self.names[0] if self.required and len(self.names) == 1 else None

    def text(self, *, is_forced: bool) -> str:
        """Return the focus in words, for models that cannot be restricted to some of their tools.

        ``is_forced``: the request forces a call. What its tool choice says is left out then, which may be everything.
        """
        if is_forced and (self.only_tool or not self.narrows):
            return ""
        if self.only_tool:
            return f"Call {self.only_tool} in your next step."
        if not self.narrows:
            return "Call a tool in your next step."
        must = "Call one of these tools" if self.required else "If you call a tool, call one of these"
        return f"{must} in your next step: {', '.join(self.names)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The surface of one request: the active ``tools`` by name, and everything else that the model receives.

    ``first_step`` is None if the first step does not differ from the others.
    """

    tools: tuple[Mapping[str, Any], ...]
    may_call: bool
    policy: str
    first_step: FirstStep | None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the active tools, in order."""
        return tuple(tool["name"] for tool in self.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a provider: at most ``max_tools`` (None: any number) whose names match ``names``.

    ``convert`` returns a schema in the provider's form, or raises keywords.UnsupportedSchemaError. ``takes_patterns``:
    it is no provider of models, and gets every pattern.
    """

    provider: str
    names: re.Pattern[str]
    convert: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    max_tools: int | None = None
    takes_patterns: bool = False


def read(document: Mapping[str, Any], mode: str) -> Surface:
    """Return the content of a surface's JSON document. Raise errors.Invalid for an unknown mode."""
    if mode not in MODES:
        modes = " or ".join(MODES)
        raise errors.Invalid([errors.Problem(path="mode", message=f"Unknown mode {mode!r}. Use {modes}.")])
    tools = tuple(sorted(document["tools"], key=lambda tool: str(tool["name"])))
    may_call = bool(tools) and document["tool_choice"] != "none"
    return Surface(
        tools=tools,
        may_call=may_call,
        policy=document["policy"]["text"],
        first_step=first_step(document.get("directive"), [tool["name"] for tool in tools])
        if may_call
        else None,
    )


def check(content: Surface, limits: Limits, profile: profiles.Profile) -> dict[str, Mapping[str, Any]]:
    """Check a surface against a provider's limits. Return each tool's schema in the provider's form, by name.

    Raise errors.ProviderLimit with everything that the provider does not accept.
    """
    problems = []
    maximum = limits.max_tools
    if maximum is not None and len(content.tools) > maximum:
        problems.append(errors.Problem(path="tools", message=_too_many(content, limits.provider, maximum)))
    schemas: dict[str, Mapping[str, Any]] = {}
    for tool in content.tools:
        name = tool["name"]
        schema, refusals = fit(tool, limits, profile)
        problems += [
            errors.Problem(path=f"tools.{name}.{field}", message=f"{refusal} {WAY_OUT}")
            for field, refusal in refusals.items()
        ]
        if schema is not None:
            schemas[name] = schema
    if problems:
        raise errors.ProviderLimit(limits.provider, problems)
    return schemas


def fit(
    tool: Mapping[str, Any], limits: Limits, profile: profiles.Profile
) -> tuple[Mapping[str, Any] | None, dict[str, str]]:
    """Return a tool's schema in the provider's form, and why the provider refuses the tool, by field."""
    refusals = {}
    if not limits.names.fullmatch(tool["name"]):
        refusals["name"] = f"{limits.provider} only accepts names that match {limits.names.pattern}."
    maximum, length = profile.max_description, len(tool["description"])
    if maximum is not None and length > maximum:
        refusals["description"] = (
            f"{profile.platform} accepts descriptions of at most {maximum:,} characters, but this one has {length:,}."
        )
    because = "it is nested too deeply"
    try:
        # Providers support JSON Schema 2020-12, or parts of it.
        schema = schema_drafts.current(tool["input_schema"])
        return limits.convert(schema if limits.takes_patterns else patterns.without(schema)), refusals
    except keywords.UnsupportedSchemaError as error:
        because = str(error)
    except RecursionError:
        pass
    refusals["input_schema"] = (
        f"{limits.provider} does not support this schema, and no other form has the same meaning: {because}."
    )
    return None, refusals


def description(tool: Mapping[str, Any]) -> dict[str, str]:
    """Return the tool's description as a field, if it has one, because providers reject a blank one."""
    return {"description": tool["description"]} if tool["description"].strip() else {}


def openai_step(
    step: FirstStep,
    profile: profiles.Profile,
    choice_of: Callable[[str], Mapping[str, Any]],
    allowed: Callable[[FirstStep], Mapping[str, Any]],
) -> dict[str, Any]:
    """Return what a first step changes in a request in one of OpenAI's forms, which ``choice_of`` a tool and the
    ``allowed`` tools have.
    """
    rendered: dict[str, Any] = {}
    is_forced = step.required and profile.can_be_forced()
    if is_forced and step.only_tool:
        rendered["tool_choice"] = choice_of(step.only_tool)
    elif step.narrows and profile.allowed_tools:
        return {"tool_choice": allowed(step)}
    elif is_forced:
        rendered["tool_choice"] = "required"
    if text := step.text(is_forced=is_forced):
        rendered["messages"] = [{"role": "user", "content": text}]
    return rendered


def first_step(directive: Mapping[str, Any] | None, active: Sequence[str]) -> FirstStep | None:
    """Return the focus that a directive gives the first step, in which the ``active`` tools are offered, if any."""
    if directive is None:
        return None
    focus = {*directive["active_tools"]}.intersection(active)
    if not focus:
        return None
    names = tuple(name for name in active if name in focus or name in keys.RESERVED)
    required, narrows = directive["tool_choice"] == "required", len(names) < len(active)
    return FirstStep(names=names, narrows=narrows, required=required) if required or narrows else None


def _too_many(content: Surface, provider: str, maximum: int) -> str:
    meta_tool_count = len(keys.RESERVED.intersection(content.names))
    of_them = f", {meta_tool_count} of them meta-tools" if meta_tool_count else ""
    beside = ", which leaves room for the meta-tools" if meta_tool_count else ""
    return (
        f"{len(content.tools)} tools are sent{of_them}, but {provider} accepts at most {maximum}. Turn some off, let "
        f"toolkits be loaded on request, or give the agent a budget of {maximum - meta_tool_count} tools{beside}."
    )
