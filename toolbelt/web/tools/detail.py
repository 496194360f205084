"""The page of a tool: what a model receives of it, and its agents."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.catalog import entries
from toolbelt.control.catalog import purging as purges
from toolbelt.control.people import rights
from toolbelt.control.reports import usage
from toolbelt.core import catalog, declared_versions, errors, schema
from toolbelt.web.access import blocking, purging
from toolbelt.web.kit import explained, fields, filters, http, paging, pieces, responses, texts, titles, words
from toolbelt.web.kit import forms as kit
from toolbelt.web.tools import arguments

_HINTS = {
    "readOnlyHint": ("read-only", "writes"),
    "destructiveHint": ("destructive", "non-destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("open world", "closed world"),
}


class OneTool(filters.FindAgents):
    """The agents that the page of a tool shows, with and without the tool."""

    others_offset = fields.Offset()
    record = fields.NameList()


class Kept(kit.Change):
    """Whether the approved description is kept: the requested state, and the state that the page showed."""

    on = fields.State(("true", "false"))
    was = fields.State(("true", "false"))


class Labels(kit.Change):
    """The labels that a tool brings: the requested ones, and those that the page showed."""

    brings = fields.NameList()
    was = fields.NameList()


class Recorded(kit.Change):
    """The arguments that records of calls keep: those requested, and those that the page showed."""

    paths = fields.NameList()
    was = fields.NameList()


@require_safe
def page(request: http.Request, tool: str) -> HttpResponse:
    """Show one tool."""
    return responses.show(request, _Page(request, tool), "tools/tool.html")


@require_POST
@permission_required(rights.permission("change", "tool"), raise_exception=True)
def block(request: http.Request, tool: str) -> HttpResponse:
    """Block a tool for everyone, or unblock it."""
    home = reverse("web:tool", args=[tool])
    return blocking.respond(request, "tool", tool, home, "tools/_blocked.html", lambda: _Page(request, tool))


@require_POST
@permission_required(rights.permission("change", "tool"), raise_exception=True)
def purge(request: http.Request, tool: str) -> HttpResponse:
    """Purge a tool from every conversation, after a confirmation."""
    return purging.respond(request, "tool", tool, reverse("web:tool", args=[tool]))


@require_POST
@permission_required(rights.permission("change", "tool"), raise_exception=True)
def keep(request: http.Request, tool: str) -> HttpResponse:
    """Keep the approved description of a tool, whatever its server lists, or follow the server again."""
    responses.declare(request, reverse("web:tool", args=[tool]))
    values = Kept(request.POST).checked()
    on = values["on"]
    changes, seen = ({"keep_description": True if state else None} for state in (on, values["was"]))
    change = entries.change(responses.write(request, values), "tool", tool, changes, was=seen)
    done = "is kept" if on else "follows its server again"
    return responses.respond_changed(
        request, change, f"The description of {titles.label('tool', tool)} {done}"
    )


@require_POST
@permission_required(rights.permission("change", "tool"), raise_exception=True)
def label(request: http.Request, tool: str) -> HttpResponse:
    """Set the labels that calls of a tool leave in their sessions."""
    responses.declare(request, reverse("web:tool", args=[tool]))
    values = Labels(request.POST).checked()
    changes, seen = ({"brings": names or None} for names in (values["brings"], values["was"]))
    change = entries.change(responses.write(request, values), "tool", tool, changes, was=seen)
    done = f"bring {words.listing(values['brings'])}" if values["brings"] else "bring no labels of its own"
    return responses.respond_changed(request, change, f"Calls of {titles.label('tool', tool)} {done}")


@require_POST
@permission_required(rights.permission("change", "tool"), raise_exception=True)
def record(request: http.Request, tool: str) -> HttpResponse:
    """Choose the arguments that records of the tool's calls keep from now on."""
    responses.declare(request, reverse("web:tool", args=[tool]))
    values = Recorded(request.POST).checked()
    changes, seen = ({"recorded_fields": values[name] or None} for name in ("paths", "was"))
    change = entries.change(responses.write(request, values), "tool", tool, changes, was=seen)
    return responses.respond_changed(
        request, change, f"Arguments to record of {titles.label('tool', tool)} are saved"
    )


class _Page(pieces.Page):
    """One tool."""

    block_spans = blocking.SPANS

    def __init__(self, request: http.Request, key: str) -> None:
        index, criteria = access_index.load(), filters.read(OneTool(request.GET))
        stored = index.catalog
        tool = stored.tools.get(key)
        if tool is None:
            raise errors.NotFound("tool", key, stored.tools)
        plugin, tool = stored.plugins.get(tool.plugin), declared_versions.offered(tool)
        listed = list(itertools.islice(arguments.listed(tool.input_schema), arguments.MAX_COUNT + 1))
        on = [access for access in index.agents if key in access.granted]
        on_request = [access for access in index.agents if key in access.on_request]
        path, with_tool = reverse("web:tool", args=[key]), {access.agent.key for access in (*on, *on_request)}
        part = paging.part(paging.matching_agents([*on, *on_request], criteria["agents"]), criteria["offset"])
        matching = paging.matching_agents(index.agents, criteria["agents"])
        others = paging.part(
            [access for access in matching if access.agent.key not in with_tool], criteria["others_offset"]
        )
        closed = access_index.closed(stored).get(key)
        may_see_calls = rights.may_read(request.user, "call_record")
        self.key = key
        self.tool = tool
        self.category = stored.category(tool)
        self.is_upstream = plugin is not None and bool(plugin.upstream)
        self.kept_by_server = plugin is not None and plugin.keep_descriptions
        self.toolkits = stored.toolkits_of.get(key, ())
        self.closed = closed
        self.reason = explained.Explanations([closed]).of(closed)
        self.description = texts.text(tool.description) if tool.description.strip() else None
        self.arguments = tuple(listed[: arguments.MAX_COUNT])
        self.has_more_arguments = len(listed) > arguments.MAX_COUNT
        self.recorded = " ".join(tool.recorded_fields)
        # What a proof would need is filled in by its link.
        self.record = " ".join(dict.fromkeys([*tool.recorded_fields, *criteria["record"]]))
        self.brings = sorted(stored.brings.get(tool.key, ()))
        self.hints = ", ".join(_hints(tool))
        self.schema = _document(tool.input_schema)
        self.output_schema = _document(tool.output_schema) if tool.output_schema else ""
        self.policy = tool.policy.strip() if key not in stored.toolkits_of else ""
        self.live = ""
        if not tool.blocked and request.user.has_perm(rights.permission("change", "tool")):
            self.live = blocking.describe_live(index, "tool", key)
        self.purged = purges.last("tool", key)
        self.called = next(iter(usage.by_tool(tool=key)), None) if may_see_calls else None
        self.on = len(on)
        self.agents_total = len(index.agents)
        self.on_request = len(on_request)
        self.agents = tuple((access.agent.key, access.decision(key)) for access in part.items)
        self.agents_pages = part.pages(criteria, path, anchor="#agents")
        self.others = tuple((access.agent.key, access.decision(key)) for access in others.items)
        self.others_total = others.total
        self.others_pages = others.pages(criteria, path, name="others_offset", anchor="#agents")
        self.others_open = not part.total or bool(criteria["others_offset"])
        self.find = paging.agent_filter(index.agents, criteria, path, ("offset", "others_offset"))


def _hints(tool: catalog.Tool) -> Iterator[str]:
    hints = schema.mapping(tool.annotations, {})
    for name, (yes, no) in _HINTS.items():
        if isinstance(hints.get(name), bool):
            yield yes if hints[name] else no


def _document(text: str) -> str:
    document = json.dumps(schema.mapping(text, schema.EMPTY), indent=2, ensure_ascii=False)
    # The server that offers the tool wrote it, so invisible characters are named.
    return "\n".join(map(texts.visible, document.split("\n")))
