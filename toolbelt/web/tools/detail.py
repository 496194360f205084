"""The page of one tool: what a model receives of it, and which agents have it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control.access import access_index
from toolbelt.control.reports import usage
from toolbelt.core import catalog, errors, schema
from toolbelt.web.kit import paging, pieces, texts, tool_sections, words
from toolbelt.web.tools import arguments, view_model

_HINTS = {
    "readOnlyHint": ("read-only", "writes"),
    "destructiveHint": ("destructive", "non-destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("open world", "closed world"),
}


def page(
    index: access_index.AccessIndex,
    key: str,
    filters: Mapping[str, Any],
    *,
    path: str,
    may_see_calls: bool,
) -> pieces.View:
    """Return the page; ``filters`` is which agents are looked for. Raise errors.NotFound."""
    stored = index.catalog
    tool = stored.tools.get(key)
    if tool is None:
        raise errors.NotFound("tool", key, stored.tools)
    state, word, trouble = view_model.state_for_all(access_index.closed(stored).get(key))
    taken = list(itertools.islice(arguments.listed(tool.input_schema), arguments.MAX_COUNT + 1))
    page = pieces.View(
        key=key,
        title=texts.visible(tool.title),
        risk=tool_sections.risk(tool),
        plugin=tool.plugin,
        category=stored.category(tool),
        marks=tuple(_marks(tool)),
        toolkits=view_model.in_toolkits(stored, key),
        tokens=words.number(tool.tokens),
        state=state,
        word=word,
        trouble=trouble,
        description=texts.text(tool.description) if tool.description.strip() else None,
        arguments=tuple(taken[: arguments.MAX_COUNT]),
        more_arguments=max(0, len(taken) - arguments.MAX_COUNT),
        hints=", ".join(_hints(tool)),
        schema=_document(tool.input_schema),
        output_schema=_document(tool.output_schema) if tool.output_schema else "",
        policy=tool.policy.strip() if key not in stored.toolkits_of else "",
        usage=_usage(usage.by_tool(tool=key), key) if may_see_calls else None,
        blocked=tool.blocked,
    )
    _add_agents(page, index, filters, path)
    return page


def _add_agents(
    page: pieces.View, index: access_index.AccessIndex, filters: Mapping[str, Any], path: str
) -> None:
    """Add the agents that have the tool or get it on request, in this order, and those that do not."""
    key = page.key
    on = [access for access in index.agents if key in access.granted]
    on_request = [access for access in index.agents if key in access.on_request]
    page.users = f"{words.number(len(on))} of {words.number(len(index.agents))}"
    page.on_request = words.number(len(on_request)) if on_request else ""
    shown = paging.matching_agents([*on, *on_request], filters["agents"])
    accesses = paging.part(shown, filters["offset"])
    having = {access.agent.key for access in (*on, *on_request)}
    without = paging.matching_agents(index.agents, filters["agents"])
    others = paging.part(
        [access for access in without if access.agent.key not in having], filters["others_offset"]
    )
    page.agents = tuple((access.agent.key, access.decision(key)) for access in accesses.items)
    page.agents_pages = accesses.pages(filters, path, anchor="#agents")
    page.others = tuple((access.agent.key, access.decision(key)) for access in others.items)
    page.others_total = others.total
    page.others_pages = others.pages(filters, path, name="others_offset", anchor="#agents")
    page.others_open = not accesses.total or bool(filters["others_offset"])
    page.find = paging.find_agents(index.agents, filters, path, ("offset", "others_offset"))


def _marks(tool: catalog.Tool) -> Iterator[tool_sections.Mark]:
    if tool.default_on:
        yield tool_sections.Mark(word="on by default", tone="accent")
    if tool.retired:
        yield tool_sections.Mark(word="retired", tone="warning")


def _hints(tool: catalog.Tool) -> Iterator[str]:
    hints = schema.mapping(tool.annotations, {})
    for name, (yes, no) in _HINTS.items():
        if isinstance(hints.get(name), bool):
            yield yes if hints[name] else no


def _usage(tools: Iterable[usage.OfTool], key: str) -> pieces.View:
    url = f"{reverse('web:calls')}?{urlencode({'tool': key})}"
    called = next(iter(tools), None)
    if called is None:
        return pieces.View(words="no recorded calls", url="")
    wrong = f", {words.counted(called.errors, 'error')}" if called.errors else ""
    last = words.moment(called.last).words
    return pieces.View(words=f"{words.counted(called.calls, 'call')}{wrong}, last {last}", url=url)


def _document(text: str) -> str:
    document = json.dumps(schema.mapping(text, schema.EMPTY), indent=2, ensure_ascii=False)
    # The server that offers the tool wrote it, so invisible characters are named.
    return "\n".join(map(texts.visible, document.split("\n")))
