"""Prompts, resources and templates of an agent, by the names that MCP clients use.

A prompt is called ``namespace__name``. A resource keeps its URI, because results of tools link to it; if several
granted servers list one URI, the first in stored order answers.

A listed URI is decided by its own entry, as a tool is. What a template expands to is decided by the template, unless
another entry of its server covers it and is denied (:mod:`uris`): a resource, or a template that is not wider.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import catalog, details, keys, schema, uri_templates, uris
from toolbelt.core.rules import budgets, resolution

_PREFIX = "prompt_"


def prompt_name(stored: catalog.Catalog, tool: catalog.Tool) -> str:
    """Return the name that clients use for a prompt."""
    plugin = stored.plugins.get(tool.plugin)
    space = f"{plugin.namespace}{keys.SEPARATOR}" if plugin is not None and plugin.namespace else ""
    name = tool.key.removeprefix(space)
    return space + name.removeprefix(_PREFIX) if name != _PREFIX else tool.key


def list_active(resolved: budgets.Resolution, kind: catalog.Kind) -> tuple[catalog.Tool, ...]:
    """Return the active entries of a kind, in key order; of resources with the same URI, the first in stored order."""
    active = resolved.non_tools_of(kind)
    if kind not in ("resource", "template"):
        return active
    stored = resolved.context.catalog
    first: dict[str, catalog.Tool] = {}
    for tool in sorted(active, key=lambda tool: _rank(stored, tool)):
        first.setdefault(tool.upstream_name, tool)
    return tuple(tool for tool in active if first[tool.upstream_name] is tool)


def find_prompt(resolved: budgets.Resolution, name: str) -> str | None:
    """Return the key of the prompt with this name, active or not; None if there is none."""
    return _prompts_by_name(resolved.context.catalog).get(name)


@catalog.derived
def _prompts_by_name(stored: catalog.Catalog) -> Mapping[str, str]:
    return {prompt_name(stored, tool): tool.key for tool in _of_kind(stored, "prompt")}


def find_template(resolved: budgets.Resolution, template: str, values: Mapping[str, str]) -> str | None:
    """Return the key of the entry that decides about a template with these values of variables, of which some may be
    missing: the first active template with this text, else the entry that denies it; None if there is none.
    """
    same = [
        tool for tool in _in_order(resolved.context.catalog, "template") if tool.upstream_name == template
    ]
    return _first_granted(resolved, same, uris.of_values(template, values), "")


def find_resource(resolved: budgets.Resolution, uri: str) -> str | None:
    """Return the key of the entry that decides about a URI: an active resource, else an active template that matches
    it, else the entry that denies it; None if there is none.
    """
    exact = [tool for tool in _in_order(resolved.context.catalog, "resource") if tool.upstream_name == uri]
    for tool in exact:
        if tool.key in resolved.non_tools:
            return tool.key
    matching = []
    if uris.problem(uri) is None:
        matching = [
            tool
            for tool in _in_order(resolved.context.catalog, "template")
            if uri_templates.matches(tool.upstream_name, uri)
        ]
    found = _first_granted(resolved, matching, uris.of_uri(uri), uri) if matching else None
    if found not in resolved.non_tools and exact:
        return exact[0].key
    return found


def document(stored: catalog.Catalog, tool: catalog.Tool) -> dict[str, Any]:
    """Return a prompt, resource or template as MCP lists it."""
    stored_details = schema.mapping(tool.details, {})
    valid_details = details.read(tool.details)
    content: dict[str, Any] = {}
    match tool.kind:
        case "prompt":
            content["name"] = prompt_name(stored, tool)
            arguments = stored_details.get(details.ARGUMENTS)
            if isinstance(arguments, list) and arguments and all(map(details.is_argument, arguments)):
                content["arguments"] = arguments
        case _:
            content["uri" if tool.kind == "resource" else "uriTemplate"] = tool.upstream_name
            name = stored_details.get(details.NAME)
            content["name"] = name if isinstance(name, str) and name else tool.upstream_name
            if isinstance(mime_type := stored_details.get(details.MIME_TYPE), str):
                content["mimeType"] = mime_type
            annotations = stored_details.get(details.ANNOTATIONS)
            if annotations and details.is_annotations(annotations):
                content["annotations"] = annotations
    content |= {
        name: text for name, text in (("title", tool.title), ("description", tool.description)) if text
    }
    if valid_details.icons:
        content["icons"] = list(valid_details.icons)
    if valid_details.meta:
        content["_meta"] = valid_details.meta
    return content


def _first_granted(
    resolved: budgets.Resolution, templates: list[catalog.Tool], requested: uris.Form, uri: str
) -> str | None:
    """Return the key of the first template that is active and through which the request is not denied, else of the
    entry that denies it, else of the first template; None if there are no templates.
    """
    denying = None
    for template in templates:
        if template.key in resolved.non_tools:
            denial = _denying(resolved, template, requested, uri)
            if denial is None:
                return template.key
            denying = denying or denial
    return denying or (templates[0].key if templates else None)


def _denying(
    resolved: budgets.Resolution, template: catalog.Tool, requested: uris.Form, uri: str
) -> str | None:
    """Return the key of the entry that denies what is requested through a template; None if there is none."""
    own = uris.of_template(template.upstream_name)
    for entry, form in _forms(resolved.context.catalog).get(template.plugin, ()):
        is_template = entry.kind == "template"
        if not uris.covers(form, requested) and not (
            is_template and uri and uri_templates.matches(entry.upstream_name, uri)
        ):
            continue
        if is_template and uris.is_wider(form, own):
            continue
        if resolution.is_denied(resolved.context, entry.key):
            return entry.key
    return None


@catalog.derived
def _forms(stored: catalog.Catalog) -> Mapping[str, list[tuple[catalog.Tool, uris.Form]]]:
    """Return the resources and templates of each plugin with their forms."""
    forms: dict[str, list[tuple[catalog.Tool, uris.Form]]] = defaultdict(list)
    for tool in _of_kind(stored, "resource"):
        forms[tool.plugin].append((tool, uris.of_resource(tool.upstream_name)))
    for tool in _of_kind(stored, "template"):
        forms[tool.plugin].append((tool, uris.of_template(tool.upstream_name)))
    return forms


@catalog.derived
def _in_order(stored: catalog.Catalog, kind: catalog.Kind) -> tuple[catalog.Tool, ...]:
    """Return all entries of a kind in stored order."""
    return tuple(sorted(_of_kind(stored, kind), key=lambda tool: _rank(stored, tool)))


def _of_kind(stored: catalog.Catalog, kind: catalog.Kind) -> Iterator[catalog.Tool]:
    return (stored.tools[key] for key in stored.non_tools if stored.tools[key].kind == kind)


def _rank(stored: catalog.Catalog, tool: catalog.Tool) -> tuple[int, str]:
    by_plugin = _ranks(stored)
    return by_plugin.get(tool.plugin, len(by_plugin)), tool.key


@catalog.derived
def _ranks(stored: catalog.Catalog) -> Mapping[str, int]:
    """Return the place of each plugin."""
    return {name: rank for rank, name in enumerate(stored.plugins)}
