"""The preview of a conversation: what its first request has, and what each later change of the agent appends."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from toolbelt.control.agents import agent_versions
from toolbelt.control.reports import queries
from toolbelt.core import errors, surface, tool_deltas
from toolbelt.formats.appending import lines
from toolbelt.runtime.surfaces import appending
from toolbelt.web.kit import audit_words, pieces

# The most changes that are shown, the latest.
MAX_CHANGES = 5
_HOW = {
    "define": "A new tool is defined where it was added",
    "refer": "A new tool is offered if the agent could load it at the start, or called through call_tool",
    "dispatch": "A new tool is called through call_tool",
    "withdraw": "one that is turned off is withdrawn",
    "restrict": "one that is turned off may not be called",
    "say": "one that is turned off is named in words",
}


class Model(NamedTuple):
    """Models of one line: what they are called, and how a program asks for them."""

    label: str
    form: str
    model: str
    platform: lines.Platform = "api"


MODELS: Mapping[str, Model] = {
    "claude": Model("Claude from Opus 4.8 on", "anthropic", "claude-opus-5-5"),
    "claude-platforms": Model(
        "Claude on Bedrock, Google Cloud or Azure", "anthropic", "claude-opus-5-5", "bedrock"
    ),
    "claude-old": Model("Claude Sonnet 5 and older", "anthropic", "claude-sonnet-5"),
    "openai": Model("OpenAI, Responses", "openai_responses", "gpt-6"),
    "openai-chat": Model("OpenAI, Chat Completions", "openai_chat", "gpt-5.6"),
    "gemini": Model("Gemini", "gemini", "gemini-4-pro"),
    "other": Model("Any other model, Chat Completions", "openai_chat", ""),
}


class Part(pieces.View):
    """A part of the conversation: its start, or what was appended after a change (``entry``)."""

    def __init__(self, append: Mapping[str, Any], entry: queries.Entry | None) -> None:
        content = append["prefix"]
        if content is None and append["messages"]:
            content = {name: append[name] for name in ("messages", "request") if append[name]}
        self.id = f"conversation-{entry.id if entry is not None else 'start'}"
        self.title = audit_words.sentence(entry) if entry is not None else "Start"
        self.when = entry.at if entry is not None else None
        self.text = json.dumps(content, indent=2, ensure_ascii=False) if content else ""
        self.size, self.tokens = len(self.text.encode()), append["tokens"]


class Conversation(pieces.View):
    """A conversation that began before the latest changes of an agent, or with its version ``start``.

    If the provider does not accept the start, there is a ``problem``.
    """

    problem = ""

    def __init__(
        self, shown: surface.Surface, chosen: str, start: agent_versions.Version | None, subagent: str | None
    ) -> None:
        model = MODELS[chosen]
        means = lines.of(model.form, model.model, model.platform).means
        self.label = model.label
        self.how = f"{_HOW[means.add]}; {_HOW[means.remove]}. Calls of it are refused immediately."
        self.parts: list[Part] = []
        token: str | None = None
        try:
            for entry, seen in _versions(shown, start, subagent):
                asked = appending.Conversation(token, model.platform)
                hashes = tool_deltas.hashes((*seen.tools, *seen.meta_tools))
                append = appending.of(asked, seen, hashes, model.form, model.model)
                token = append["token"]
                self.parts.append(Part(append, entry))
        except errors.Invalid as invalid:
            self.problem = str(invalid)


def _versions(
    shown: surface.Surface, start: agent_versions.Version | None, subagent: str | None
) -> Iterator[tuple[queries.Entry | None, surface.Surface]]:
    """Yield what the model sees at the start, and then each of the latest changes with what it sees after that."""
    agent = shown.agent

    def surface_of(version: agent_versions.Version) -> surface.Surface:
        return agent_versions.surface_of(version, None, subagent)

    since = start.last.id if start is not None and start.last is not None else 0
    entries = queries.changes(agent=agent, size=MAX_CHANGES).entries
    # A batch is one step.
    by_step = itertools.groupby(reversed(entries), lambda entry: entry.batch or entry.id)
    steps = [next(group) for _, group in by_step]
    if start is None and not steps:
        yield None, shown
        return
    if start is None and steps[0].action == "agent.create":
        start, steps = agent_versions.rebuild(agent, steps[0].id), steps[1:]
    elif start is None:
        start = agent_versions.rebuild(agent, steps[0].at - dt.timedelta(microseconds=1))
    yield None, surface_of(start)
    later = [entry for entry in steps if entry.id > since]
    versions = agent_versions.rebuild_each(agent, [entry.id for entry in later])
    yield from zip(later, map(surface_of, versions), strict=True)
