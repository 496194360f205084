"""A configuration and its sessions, which answer requests: what a scenario runs against."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import jsonschema

from tests.reference import belts, budgets, loading, policy
from tests.reference.belts import Entry
from tests.reference.rules import Decision, Load, View, options_of

TEXT = {"type": "string", "minLength": 1}
NAME = {"properties": {"toolkit": TEXT}, "required": ["toolkit"], "additionalProperties": False}
# The arguments of the meta-tools.
META_TOOLS: dict[str, Entry] = {
    "list_toolkits": {"additionalProperties": False},
    "load_tools": NAME,
    "search_tools": {"properties": {"query": TEXT}, "required": ["query"]},
    "unload_tools": NAME,
}
REFUSALS = {
    "dormant": "unknown-tool",
    "discoverable": "tool-not-active",
    "denied": "tool-denied",
    "unavailable": "tool-unavailable",
}


class Request(NamedTuple):
    """The agent, its conversation, the request in that, and the kind of subagent that the request is for."""

    agent: str
    session: str | None = None
    request_id: str | None = None
    subagent: str | None = None


class Surface(NamedTuple):
    """What a model receives, and the decision about every tool."""

    decisions: dict[str, Decision]
    sections: list[policy.Section]
    directive: tuple[tuple[str, ...], str] | None
    meta_tools: tuple[str, ...]
    loadable_toolkits: list[str]
    options: dict[str, Any]
    text: str


class Change(NamedTuple):
    """A load or an unload, and the request that it was made in."""

    load: Load
    is_on: bool
    request_id: str | None


class World:
    """A belt, and what sessions did so far, in order. ``prepare`` adds hash and tokens to the entries of tools."""

    def __init__(self, prepare: Callable[[Entry], Entry], count: budgets.Count) -> None:
        self._prepare = prepare
        self._count = count
        self._document: Entry = {}
        self._changes: dict[tuple[str, str], list[Change]] = {}
        self._loadouts: dict[tuple[str, str], str] = {}
        self.now: datetime | None = None

    def load(self, document: Entry) -> None:
        """Load a configuration, and forget all sessions."""
        self._document = copy.deepcopy(document)
        self._belt = belts.read(self._prepare(self._document))
        self._changes, self._loadouts = {}, {}

    def edit(self, edits: Mapping[str, Iterable[Entry]]) -> None:
        """Make an operator's change."""
        self._document = belts.edited(self._document, edits, self.now)
        self._belt = belts.read(self._prepare(self._document))

    def equip(self, agent: str, session: str, loadout: str) -> None:
        """Give a session another loadout than its agent's."""
        self._loadouts[agent, session] = loadout

    def view(self, request: Request) -> View:
        """Return what a request is decided from."""
        agent = self._belt.agents[request.agent]
        key = (request.agent, request.session or "")
        loads: dict[Load, None] = {}
        for change in self._changes.get(key, ()) if request.session is not None else ():
            # It counts for every request but its own; one without an id is a request of its own.
            is_own = change.request_id is not None and change.request_id == request.request_id
            was_loaded = loads.pop(change.load, 0) is None
            if was_loaded if is_own else change.is_on:
                loads[change.load] = None
        return View(
            belt=self._belt,
            agent=agent,
            config=belts.config_of(agent, self.now),
            has_session=request.session is not None,
            loads=tuple(loads),
            session_loadout=self._loadouts.get(key, "") if request.session is not None else "",
            subagent=request.subagent,
            now=self.now,
        )

    def surface(self, request: Request, message: str | None = None) -> Surface:
        """Return the surface of a request."""
        view = self.view(request)
        decisions = budgets.resolve(view, self._count)
        sections = policy.sections(view, decisions)
        loadable = loading.loadable_toolkits(view, self._count)
        return Surface(
            decisions=decisions,
            sections=sections,
            directive=policy.directive(view, decisions, message),
            meta_tools=tuple(META_TOOLS) if loading.has_meta_tools(view, self._count) else (),
            loadable_toolkits=loadable,
            text=policy.text(view, sections, loadable),
            options={
                key: next((options for _, options in options_of(view, key)), {})
                for key in budgets.active(view, decisions)
            },
        )

    def call(self, request: Request, tool: str, arguments: Any) -> dict[str, Any]:
        """Call a tool: meta-tools run, other tools are only admitted."""
        view = self.view(request)
        upcoming = self.view(request._replace(request_id=None))
        if tool in META_TOOLS:
            if not loading.answers_meta_tools(view, self._count):
                return {"is_error": True, "code": "unknown-tool"}
            if not jsonschema.Draft202012Validator(META_TOOLS[tool]).is_valid(arguments):
                return {"is_error": True, "code": "invalid-arguments"}
            return {"is_error": False, **self._meta(request, upcoming, tool, arguments)}
        decision = budgets.resolve(view, self._count).get(tool)
        if decision is None or not belts.is_tool(self._belt.tools[tool]):
            return {"is_error": True, "code": "unknown-tool"}
        if decision.state != "active":
            return {"is_error": True, "code": REFUSALS[decision.state]}
        if not jsonschema.Draft202012Validator(belts.schema_of(self._belt.tools[tool])).is_valid(arguments):
            return {"is_error": True, "code": "invalid-arguments"}
        return {"is_error": False}

    def _meta(self, request: Request, view: View, tool: str, arguments: Any) -> dict[str, Any]:
        if tool == "list_toolkits":
            listed = loading.listed(view, self._count)
            return {"status": "ok", "toolkits": listed, "loaded_toolkits": view.loaded()}
        if tool == "search_tools":
            return {"status": "ok"}
        name = arguments["toolkit"]
        if tool == "load_tools":
            load = loading.find(view, name, self._count)
            status = loading.load_status(view, name, self._count)
        else:
            load = loading.find_loaded(view, name, self._count)
            status = loading.unload_status(view, name, self._count)
        answer: dict[str, Any] = {"status": status}
        if status == "conflict" and load is not None:
            tools = loading.tools_of(view, load, self._count)
            tool, existing, candidate = loading.conflict(view, load, tools) or ("", {}, {})
            answer |= {"conflicting_tool": tool, "existing_options": existing, "candidate_options": candidate}
        if status in ("loaded", "unloaded") and load is not None and request.session is not None:
            change = Change(load, status == "loaded", request.request_id)
            self._changes.setdefault((request.agent, request.session), []).append(change)
            answer["takes_effect"] = "next_request"
            view = self.view(request._replace(request_id=None))
        answer["loaded_toolkits"] = view.loaded()
        return answer
