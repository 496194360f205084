"""Reading of entries into values.

Reading never fails: what cannot be understood (a wrong type, an unknown name) is skipped as if it were missing. Nothing
of a valid entry is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import agents, catalog, grants, keys, schema, tool_versions
from toolbelt.core.belts import vocabulary

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belt:
    """A whole configuration: the catalog, and the agents by key and in order."""

    catalog: catalog.Catalog
    agents: Mapping[str, agents.Agent]


def belt(document: Any, *, count_tokens: CountTokens | None = None, number: int = 0, stamp: str = "") -> Belt:
    """Read a whole document."""
    written = dict.fromkeys(_read(document, "category"))
    categories = tuple(name for name in written if name not in catalog.CATEGORIES)
    tools = {fields["key"]: tool(fields, categories, count_tokens) for fields in _read(document, "tool")}
    stored = catalog.compile_(
        number=number,
        stamp=stamp,
        categories=categories,
        plugins=[plugin(fields, categories) for fields in _read(document, "plugin")],
        tools=tools.values(),
        toolkits=[toolkit(fields, tools) for fields in _read(document, "toolkit")],
        loadouts=[loadout(fields) for fields in _read(document, "loadout")],
        sub_apps=[sub_app(fields, tools) for fields in _read(document, "sub_app")],
        count_tokens=count_tokens,
    )
    values = [agent(fields, stored) for fields in _read(document, "agent")]
    return Belt(catalog=stored, agents={fields.key: fields for fields in values})


def entries(document: Any, section: str) -> list[Any] | tuple[Any, ...]:
    """Return the raw entries of a section; none if it is missing or not a list."""
    listed = document.get(section) if isinstance(document, Mapping) else None
    return listed if isinstance(listed, (list, tuple)) else ()


def clean(kind: vocabulary.KindName, entry: Any) -> Any:
    """Return the fields of an entry that are given and fit; None if the entry has no name."""
    spec = vocabulary.KINDS[kind]
    fields = spec.shape.read(entry)
    name = spec.name_of(fields)
    return fields if isinstance(name, str) and name.strip() else None


def _read(document: Any, kind: vocabulary.KindName) -> list[Any]:
    cleaned = (clean(kind, entry) for entry in entries(document, vocabulary.KINDS[kind].section))
    return [fields for fields in cleaned if fields is not None]


def plugin(fields: Mapping[str, Any], categories: Iterable[str]) -> catalog.Plugin:
    """Read a plugin; the status "disabled" means that it is not active."""
    status = fields.get("status", "ready")
    return catalog.Plugin(
        **{
            **fields,
            "category": _spelled(fields, categories),
            "status": "failed" if status == "failed" else "ready",
            "active": fields.get("active", True) and status != "disabled",
            "upstream": schema.canonical(fields["upstream"]) if fields.get("upstream") else "",
            **{
                field: tuple(name for name in fields.get(field, ()) if name is not None)
                for field in ("declared_by", "not_running")
            },
            "preapproved": {
                key: version for key, version in fields.get("preapproved", {}).items() if version is not None
            },
        }
    )


def tool(
    fields: Mapping[str, Any], categories: Iterable[str], count_tokens: CountTokens | None
) -> catalog.Tool:
    """Read a tool: its schemas and annotations become canonical JSON, and its tokens are counted if possible."""
    texts = {
        field: schema.canonical(fields[field])
        for field in ("input_schema", "output_schema", "annotations", "details", "approved_version")
        if field in fields
    }
    if texts.get("annotations") == "{}":
        # Empty annotations are the same as none: the two must not count as different.
        del texts["annotations"]
        fields = {key: value for key, value in fields.items() if key != "annotations"}
    tokens = 0
    if count_tokens is not None and fields.get("kind", "tool") == "tool":
        described = fields.get("description", ""), fields.get("input_schema", schema.EMPTY)
        tokens = count_tokens(catalog.model_json(fields["key"], *described))
    problem = catalog.schema_problem(
        fields.get("kind", "tool"),
        texts.get("input_schema", schema.EMPTY_TEXT),
        texts.get("output_schema", ""),
    )
    values = {**fields, "category": _spelled(fields, categories), **texts, "tokens": tokens}
    # Older files have hashes without a number.
    return tool_versions.renumbered(catalog.Tool(**values, schema_problem=problem))


def toolkit(fields: Mapping[str, Any], tools: Container[str]) -> catalog.Toolkit:
    """Read a toolkit, with those of its members that exist."""
    return catalog.Toolkit(
        **{
            **fields,
            "members": tuple(catalog.Member(**use) for use in _uses(fields, "members", tools)),
            "tool_notes": {
                key: note for key, note in fields.get("tool_notes", {}).items() if note is not None
            },
            "triggers": tuple(
                _trigger(trigger) for trigger in fields.get("triggers", ()) if trigger is not None
            ),
        }
    )


def _trigger(fields: Mapping[str, Any]) -> catalog.Trigger:
    # An empty list of patterns is ignored. An empty focus is not: it means that this message needs none of the tools.
    groups = tuple(_texts(group) for group in fields.get("all", ()) if group is not None)
    return catalog.Trigger(
        name=fields.get("name", ""),
        any=_texts(fields.get("any", ())) or None,
        all=groups or None,
        none=_texts(fields.get("none", ())),
        focus=_texts(fields["focus"]) if "focus" in fields else None,
        tool_choice=fields.get("tool_choice", "auto"),
    )


def loadout(fields: Mapping[str, Any]) -> catalog.Loadout:
    """Read a loadout."""
    lists = ("plugins", "categories", "discoverable", "disabled")
    return catalog.Loadout(**{**fields, **{field: _texts(fields.get(field, ())) for field in lists}})


def sub_app(fields: Mapping[str, Any], tools: Container[str]) -> catalog.SubApp:
    """Read a sub-app, with those of its tools that exist."""
    return catalog.SubApp(
        **{
            **fields,
            "tool_names": _distinct(fields, "tool_names", tools),
            "agents": tuple(dict.fromkeys(_texts(fields.get("agents", ())))),
        }
    )


def agent(entry: Mapping[str, Any], stored: catalog.Catalog) -> agents.Agent:
    """Read an agent: split tools_config into switches and overrides, and sort initial toolkits as the allowed ones."""
    fields = dict(entry)
    flat = fields.pop("tools_config", {})
    switches, overrides = grants.split(stored, flat)
    allowed = _distinct(fields, "allowed_toolkits", stored.toolkits)
    initial = set(_texts(fields.get("initial_toolkits", ())))
    budget = agents.Budget(**fields.get("budget", {}))
    return agents.Agent(
        **{
            **fields,
            "tools": tuple(agents.AlwaysOn(**use) for use in _uses(fields, "tools", stored.tools)),
            "switches": switches,
            "overrides": overrides,
            "ends": _ends(fields.get("ends", {}), {**switches, **overrides}),
            "allowed_toolkits": allowed,
            "initial_toolkits": tuple(key for key in allowed if key in initial),
            # A budget with only default values is no budget.
            "budget": budget if budget != agents.Budget() else None,
            "session_loadouts": tuple(_texts(fields.get("session_loadouts", ()))),
            "subagent_kinds": tuple(dict.fromkeys(_texts(fields.get("subagent_kinds", ())))),
        }
    )


def _ends(expiries: Mapping[str, Any], flat: Mapping[str, bool]) -> dict[str, agents.End]:
    """Return the expiry of each switch and override that is set."""
    return {
        key: agents.End(at=at, then=end.get("then"), by=end.get("by", ""))
        for key, end in sorted(expiries.items())
        if key in flat and end is not None and (at := grants.parse_time(end.get("at"))) is not None
    }


def _spelled(fields: Mapping[str, Any], categories: Iterable[str]) -> str:
    """Return the entry's category as it is spelled in its definition; an unknown category as it is written."""
    written: str = fields.get("category", "")
    folded = keys.fold(written)
    return next((name for name in (*catalog.CATEGORIES, *categories) if keys.fold(name) == folded), written)


def _texts(texts: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(text for text in texts if text is not None)


def _distinct(fields: Mapping[str, Any], field: str, existing: Container[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in _texts(fields.get(field, ())) if name in existing))


def _uses(fields: Mapping[str, Any], field: str, existing: Container[str]) -> list[dict[str, Any]]:
    """Return the uses of existing tools, the first of each."""
    first: dict[str, dict[str, Any]] = {}
    for use in fields.get(field, ()):
        if use is not None and use["tool"] in existing:
            first.setdefault(use["tool"], use)
    return list(first.values())
