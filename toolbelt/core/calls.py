"""May this call go through? (semantics: Calls)

A call is admitted against the surface as it is now. A refusal is an answer that the model can read: a stable code
and a sentence with the way out. What a model is not granted is not described to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import (
    budgets,
    catalog,
    definitions,
    loading,
    meta_tools,
    resolution,
    schema,
    search,
    sessions,
    surface,
    targets,
)

REFUSALS = (
    "unknown-tool",
    "tool-not-active",
    "tool-denied",
    "tool-unavailable",
    "invalid-arguments",
    "timed-out",
    "tool-failed",
)
# How many violations a message names; the answer to the model lists all.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a call does not go through: ``code`` is one of :data:`REFUSALS`; ``errors`` name places in the arguments.

    ``mcp`` is the whole answer of an upstream server's tool that failed, as MCP has it.
    """

    code: str
    message: str
    errors: tuple[schema.Violation, ...] = ()
    mcp: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """Give the structured content that the model reads."""
        found: dict[str, Any] = {"is_error": True, "code": self.code, "message": self.message}
        if self.errors:
            found["errors"] = [{"path": error.path, "message": error.message} for error in self.errors]
        return found

    def without_values(self) -> str:
        """Say why in words that may be kept: of arguments that do not fit the places and the schema's keywords.

        The message quotes what stands there, and that may be a secret.
        """
        if not self.errors:
            return self.message
        return "The arguments do not fit: " + _listed((v.path, v.keyword or v.message) for v in self.errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The call may go through, with the options that the tool's source hands it (never mixed into arguments)."""

    tool: str
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaAnswer:
    """What a meta-tool answers; ``session`` is the session after it, None where nothing changed."""

    content: Mapping[str, Any]
    session: sessions.Session | None = None


def admit(
    resolved: budgets.Resolution, tool: str, arguments: Any, *, hide_denied: bool = False
) -> Admission | Refusal:
    """Admit or refuse a call of a tool, not of a meta-tool. ``hide_denied``: say ``unknown-tool`` of denied ones."""
    standing = resolved.standing
    if tool not in standing.catalog.tools:
        return unknown(tool)
    decision = resolved.decision(tool)
    match decision.state:
        case "dormant":
            return unknown(tool)
        case "denied" if hide_denied:
            return unknown(tool)
        case "denied":
            return Refusal(
                code="tool-denied", message=f"You are not granted {tool}. An operator can change that."
            )
        case "unavailable":
            return Refusal(
                code="tool-unavailable", message=f"{tool} is not available at present. Try something else."
            )
        case "discoverable":
            return Refusal(code="tool-not-active", message=_how_to_get(decision, standing.subagent))
    violations = schema.violations(
        standing.catalog.tools[tool].input_schema, filled(standing.catalog, tool, arguments)
    )
    if violations:
        return invalid(tool, violations)
    return Admission(tool=tool, options=resolution.options(standing, tool)[0])


def filled(stored: catalog.Catalog, tool: str, arguments: Any) -> Any:
    """Return the arguments as the tool gets them: of an upstream server's with required defaults filled in."""
    known = stored.tools[tool]
    provider = stored.plugins.get(known.plugin)
    if provider is None or not provider.upstream:
        return arguments
    return schema.filled(known.input_schema, arguments)


def meta(
    resolved: budgets.Resolution, snapshot: resolution.Snapshot, tool: str, arguments: Any, at: str = ""
) -> MetaAnswer | Refusal:
    """Answer a call of one of Toolbelt's own tools, or refuse it."""
    if tool not in meta_tools.DEFINITIONS or not surface.may_load(resolved):
        return unknown(tool)
    violations = schema.violations(meta_tools.SCHEMAS[tool], arguments)
    if violations:
        return invalid(tool, violations)
    return _META[tool](resolved, snapshot, arguments, at)


def _load(_: budgets.Resolution, snapshot: resolution.Snapshot, arguments: Any, at: str) -> MetaAnswer:
    outcome = loading.load(snapshot, arguments["toolkit"], at)
    return MetaAnswer(content=outcome.document(), session=outcome.session)


def _unload(_: budgets.Resolution, snapshot: resolution.Snapshot, arguments: Any, at: str) -> MetaAnswer:
    outcome = loading.unload(snapshot, arguments["toolkit"], at)
    return MetaAnswer(content=outcome.document(), session=outcome.session)


def _list(_: budgets.Resolution, snapshot: resolution.Snapshot, arguments: Any, at: str) -> MetaAnswer:
    return MetaAnswer(content=loading.listing(snapshot))


def hits(resolved: budgets.Resolution, arguments: Any) -> list[dict[str, Any]]:
    """Search what is discoverable, as ``search_tools`` asks for it: each hit with its schema, and what to load."""
    stored = resolved.standing.catalog
    found = {decision.tool: decision for decision in resolved.discoverable()}
    limit = arguments.get("limit", meta_tools.SEARCH_LIMIT)
    return [
        {
            "tool": hit.tool,
            "description": stored.tools[hit.tool].description,
            "input_schema": definitions.of(stored, hit.tool).input_schema,
            "load": targets.name_to_load(found[hit.tool]),
            "matched": list(hit.matched),
        }
        for hit in search.search(stored, found, arguments["query"], limit)
    ]


def _search(resolved: budgets.Resolution, _: resolution.Snapshot, arguments: Any, at: str) -> MetaAnswer:
    results = hits(resolved, arguments)
    how = loading.NOT_FOR_SUBAGENTS if resolved.standing.subagent else "Give a result's 'load' to load_tools."
    message = how if results else "Nothing that you could load matches: try other words."
    return MetaAnswer(content={"status": "ok", "results": results, "message": message})


_META: Mapping[str, Callable[[budgets.Resolution, resolution.Snapshot, Any, str], MetaAnswer]] = {
    meta_tools.LIST: _list,
    meta_tools.LOAD: _load,
    meta_tools.UNLOAD: _unload,
    meta_tools.SEARCH: _search,
}


def _how_to_get(decision: resolution.Decision, subagent: bool) -> str:
    if subagent:
        return f"{decision.tool} is not loaded. {loading.NOT_FOR_SUBAGENTS}"
    if decision.code == "budget":
        return f"{decision.tool} is deferred by the budget: unload something first, or ask an operator."
    way = f'Call load_tools with toolkit "{targets.name_to_load(decision)}"'
    return f"{decision.tool} is not loaded. {way}: it is there from the next request on."


def unknown(tool: str) -> Refusal:
    """Refuse a call of what there is not, or not for this agent."""
    return Refusal(code="unknown-tool", message=f"There is no tool named {tool!r}.")


def invalid(tool: str, violations: tuple[schema.Violation, ...]) -> Refusal:
    """Refuse a call with arguments that do not fit."""
    places = _listed((v.path, v.message) for v in violations)
    return Refusal(
        code="invalid-arguments", message=f"The arguments do not fit {tool}: {places}", errors=violations
    )


def _listed(wrong: Iterable[tuple[str, str]]) -> str:
    listed = [f"{path}: {why}" if path else why for path, why in wrong]
    more = ["and more"] if len(listed) > MOST_NAMED else []
    return "; ".join([*listed[:MOST_NAMED], *more])
