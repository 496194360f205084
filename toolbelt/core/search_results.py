"""The answer of ``search_tools``: a short line for each tool that matches, within a limit of tokens.

Only what the agent has or could load is compared, and only that is named. Texts of upstream servers are shortened.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.core import catalog, declared_versions, definitions, meta_tools, schema
from toolbelt.core.rules import budgets, resolution, targets
from toolbelt.core.search import documents, engine

# The whole answer, as JSON. Only a tool that is searched by its exact name may bring a larger schema.
MAX_TOKENS = 600
NOTHING = "No tool that you have or could load matches: try other words."
_MAX_DESCRIPTION_TOKENS, _MAX_DESCRIPTION_LENGTH = 30, 160
_MAX_MATCHED, _MAX_MATCHED_LENGTH = 4, 20
# How many toolkits are named, and how many of the best tools count for them.
_MAX_TOOLKITS, _COUNTED = 3, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The results of a page, the toolkits that fit best, and where the next page starts; None after the last."""

    results: Sequence[dict[str, Any]]
    toolkits: Sequence[str] = ()
    next_offset: int | None = None

    def answer(self, message: str) -> dict[str, Any]:
        """Return the answer that the model receives."""
        answer: dict[str, Any] = {"status": "ok", "results": list(self.results)}
        if self.toolkits:
            answer["toolkits"] = list(self.toolkits)
        if self.next_offset is not None:
            answer["next_offset"] = self.next_offset
        return {**answer, "message": message}


def of(
    resolved: budgets.Resolution,
    arguments: Mapping[str, Any],
    *,
    longest_message: str,
    is_dispatch: bool = False,
    includes_own: bool = False,
) -> Page:
    """Return a page of the tools that match the arguments of ``search_tools``: those that the agent has, and those that
    a load would bring.

    For ``call_tool`` (``is_dispatch``), they are those whose call would succeed, so nothing has to be loaded, and tools
    that the agent's own program runs are left out, unless ``includes_own``. Results bring their schemas, the best
    first, where there is room.
    """
    stored = resolved.context.catalog
    decisions = {**resolved.active, **{decision.tool: decision for decision in resolved.discoverable()}}
    if is_dispatch and not includes_own:
        decisions = {key: d for key, d in decisions.items() if stored.runner(stored.tools[key]) != "client"}
    lines = _Lines(resolved, decisions, is_dispatch)
    query = arguments["query"]
    if is_dispatch and query.strip() in decisions:
        return Page(results=[lines.complete(query.strip())])
    offset = arguments.get("offset", 0)
    limit = arguments.get("limit", meta_tools.SEARCH_LIMIT)
    count = offset + max(limit + 1, _COUNTED)
    hits = engine.search(stored, decisions, query, count)
    if not all(lines.is_usable(hit.tool) for hit in hits):
        # Only now, because to check them all costs more than a search.
        hits = engine.search(stored, filter(lines.is_usable, decisions), query, count)
    toolkits = lines.best_toolkits([hit.tool for hit in hits[:_COUNTED]])
    empty = Page(results=(), toolkits=toolkits, next_offset=offset + limit)
    room = MAX_TOKENS - _tokens(stored, empty.answer(longest_message))
    results: list[dict[str, Any]] = []
    for hit in hits[offset : offset + limit]:
        result = lines.of(hit.tool, hit.matched)
        room -= _tokens(stored, result) + 1
        if room < 0 and results:
            break
        results.append(result)
    for result in results if is_dispatch else ():
        schema_ = definitions.of(stored, result["tool"]).input_schema
        tokens = _tokens(stored, {"input_schema": schema_})
        if tokens <= room:
            result["input_schema"] = schema_
            room -= tokens
    end = offset + len(results)
    return Page(results=results, toolkits=toolkits, next_offset=end if results and end < len(hits) else None)


class _Lines:
    """The lines of results for an agent; ``decisions`` are those for the tools that it has or could load."""

    def __init__(
        self, resolved: budgets.Resolution, decisions: Mapping[str, resolution.Decision], is_dispatch: bool
    ) -> None:
        self._resolved, self._decisions, self._is_dispatch = resolved, decisions, is_dispatch
        self._stored = resolved.context.catalog
        self._would_load = functools.cache(functools.partial(targets.would_load, resolved))
        self._name_to_load = functools.cache(functools.partial(targets.name_to_load, resolved))

    def is_active(self, tool: str) -> bool:
        return self._decisions[tool].state == "active"

    def load(self, tool: str) -> str:
        """Return the name to load for a tool; nothing if it is active or cannot be loaded."""
        return "" if self.is_active(tool) else self._name_to_load(self._decisions[tool])

    def is_usable(self, tool: str) -> bool:
        """Return whether the agent can use a tool now, or after a load."""
        return self._is_dispatch or self.is_active(tool) or bool(self.load(tool))

    def of(self, tool: str, matched: Sequence[str]) -> dict[str, Any]:
        stored = declared_versions.offered(self._stored.tools[tool])
        result = {"tool": tool, "description": _line(self._stored, stored.description or stored.title)}
        if toolkits := self._toolkits(tool):
            result["toolkit"] = toolkits[0]
        words = ", ".join(word[:_MAX_MATCHED_LENGTH] for word in matched[:_MAX_MATCHED])
        result["matched"] = words or "similar meaning"
        result["state"] = "active" if self.is_active(tool) else "loadable"
        if load := self.load(tool):
            result["load"] = load
        return result

    def complete(self, tool: str) -> dict[str, Any]:
        """Return the line of a tool that was searched by its name, with all that a call needs."""
        return {
            **self.of(tool, ("its name",)),
            "description": definitions.of(self._stored, tool).description,
            "input_schema": definitions.of(self._stored, tool).input_schema,
        }

    def best_toolkits(self, ranked: Sequence[str]) -> list[str]:
        """Return the toolkits that have the best of these tools, best first."""
        scores: dict[str, float] = {}
        for rank, tool in enumerate(ranked, 1):
            for toolkit in self._toolkits(tool):
                scores[toolkit] = scores.get(toolkit, 0.0) + 1 / rank
        return sorted(scores, key=lambda key: (-round(scores[key], 6), key))[:_MAX_TOOLKITS]

    def _toolkits(self, tool: str) -> list[str]:
        """Return the toolkits of a tool that the agent has or could load."""
        context = self._resolved.context
        return [
            toolkit.key
            for toolkit in self._stored.toolkits_of.get(tool, ())
            if toolkit.key in context.toolkits
            or (toolkit.key in context.loadable and (self._is_dispatch or self._would_load(toolkit.key)))
        ]


def _line(stored: catalog.Catalog, text: str) -> str:
    """Return the first sentence of a text, without what cannot be printed, shortened if it is long."""
    sentence = documents.first_sentence(text)
    line = " ".join("".join(char if char.isprintable() else " " for char in sentence).split())
    short = line[:_MAX_DESCRIPTION_LENGTH]
    while _tokens(stored, short) > _MAX_DESCRIPTION_TOKENS:
        short = short[: len(short) * 3 // 4]
    return line if short == line else short.rstrip() + "…"


def _tokens(stored: catalog.Catalog, value: Any) -> int:
    text = schema.canonical(value)
    # Without a counter, as in scenarios: a token has about four characters.
    return stored.count_tokens(text) if stored.count_tokens else len(text.encode()) // 3
