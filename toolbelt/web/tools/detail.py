"""The page of one tool: what a model receives of it, and which agents have it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import usage
from toolbelt.core import catalog, errors, schema
from toolbelt.web.access import blocking
from toolbelt.web.kit import fields, filters, http, paging, pieces, responses, texts, tool_sections, words
from toolbelt.web.tools import arguments, listing

_HINTS = {
    "readOnlyHint": ("read-only", "writes"),
    "destructiveHint": ("destructive", "non-destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("open world", "closed world"),
}


class OneTool(filters.FindAgents):
    """Which agents the page of a tool shows: of those that have it, and of those that do not."""

    others_offset = fields.Offset()


@require_safe
def page(request: http.Request, tool: str) -> HttpResponse:
    """Show one tool."""
    return responses.show(request, _page(request, tool), "tools/tool.html")


@require_POST
@permission_required(rights.permission("change", "tool"), raise_exception=True)
def block(request: http.Request, tool: str) -> HttpResponse:
    """Block a tool for everyone, or unblock it."""
    home = reverse("web:tool", args=[tool])
    return blocking.respond(request, "tool", tool, home, "tools/_blocked.html", lambda: _page(request, tool))


def _page(request: http.Request, key: str) -> pieces.View:
    index = access_index.load()
    stored = index.catalog
    tool = stored.tools.get(key)
    if tool is None:
        raise errors.NotFound("tool", key, stored.tools)
    state, word, trouble = listing.state_for_all(access_index.closed(stored).get(key))
    taken = list(itertools.islice(arguments.listed(tool.input_schema), arguments.MAX_COUNT + 1))
    page = pieces.View(
        key=key,
        title=texts.visible(tool.title),
        risk=tool_sections.risk(tool),
        plugin=tool.plugin,
        category=stored.category(tool),
        marks=tuple(_marks(tool)),
        toolkits=listing.in_toolkits(stored, key),
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
        usage=_usage(usage.by_tool(tool=key), key) if rights.may_read(request.user, "call_record") else None,
        blocked=tool.blocked,
    )
    _add_agents(page, index, filters.read(OneTool(request.GET)))
    return page


def _add_agents(page: pieces.View, index: access_index.AccessIndex, given: Mapping[str, Any]) -> None:
    """Add the agents that have the tool or get it on request, in this order, and those that do not."""
    key, path = page.key, reverse("web:tool", args=[page.key])
    on = [access for access in index.agents if key in access.granted]
    on_request = [access for access in index.agents if key in access.on_request]
    page.users = f"{words.number(len(on))} of {words.number(len(index.agents))}"
    page.on_request = words.number(len(on_request)) if on_request else ""
    shown = paging.matching_agents([*on, *on_request], given["agents"])
    accesses = paging.part(shown, given["offset"])
    having = {access.agent.key for access in (*on, *on_request)}
    without = paging.matching_agents(index.agents, given["agents"])
    others = paging.part(
        [access for access in without if access.agent.key not in having], given["others_offset"]
    )
    page.agents = tuple((access.agent.key, access.decision(key)) for access in accesses.items)
    page.agents_pages = accesses.pages(given, path, anchor="#agents")
    page.others = tuple((access.agent.key, access.decision(key)) for access in others.items)
    page.others_total = others.total
    page.others_pages = others.pages(given, path, name="others_offset", anchor="#agents")
    page.others_open = not accesses.total or bool(given["others_offset"])
    page.find = paging.find_agents(index.agents, given, path, ("offset", "others_offset"))


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
    url = reverse("web:calls", query={"tool": key})
    called = next(iter(tools), None)
    if called is None:
        return pieces.View(words="no recorded calls", url="")
    wrong = f", {words.counted(called.errors, 'error')}" if called.errors else ""
    last = words.since(called.last)
    return pieces.View(words=f"{words.counted(called.calls, 'call')}{wrong}, last {last}", url=url)


def _document(text: str) -> str:
    document = json.dumps(schema.mapping(text, schema.EMPTY), indent=2, ensure_ascii=False)
    # The server that offers the tool wrote it, so invisible characters are named.
    return "\n".join(map(texts.visible, document.split("\n")))
