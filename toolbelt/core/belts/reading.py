"""Reading of entries into values.

Reading never fails: what cannot be understood (a wrong type, an unknown name) is skipped as if it were missing. Nothing
of a valid entry is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import agents, call_limits, catalog, grants, keys, schema, tool_versions
from toolbelt.core.belts import fields, findings, vocabulary

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belt:
    """A whole configuration: the catalog, and the agents by key and in order."""

    catalog: catalog.Catalog
    agents: Mapping[str, agents.Agent]


# What fits of an entry (None if nothing does), and findings for what does not.
Read = tuple[Any, list[findings.Finding]]


def sections(document: Any) -> dict[vocabulary.KindName, list[Read]]:
    """Read the entries of a whole document."""
    return {
        kind: [entry(kind, written) for written in entries(document, spec.section)]
        for kind, spec in vocabulary.KINDS.items()
    }


def entry(kind: vocabulary.KindName, written: Any) -> Read:
    """Read one entry."""
    return fields.read(vocabulary.KINDS[kind].model, written)


def belt(
    read: Mapping[vocabulary.KindName, Iterable[Read]],
    *,
    count_tokens: CountTokens | None = None,
    number: int = 0,
    stamp: str = "",
) -> Belt:
    """Return the values of a whole document."""

    def named(kind: vocabulary.KindName) -> Iterator[Any]:
        return (fitting for fitting, _ in read[kind] if is_named(kind, fitting))

    categories = tuple(name for name in dict.fromkeys(named("category")) if name not in catalog.CATEGORIES)
    tools = {it.key: tool(it, categories, count_tokens) for it in named("tool")}
    stored = catalog.compile_(
        number=number,
        stamp=stamp,
        categories=categories,
        plugins=[plugin(it, categories) for it in named("plugin")],
        tools=tools.values(),
        toolkits=[toolkit(it, tools) for it in named("toolkit")],
        loadouts=[loadout(it) for it in named("loadout")],
        sub_apps=[sub_app(it, tools) for it in named("sub_app")],
        gate_rules=[gate_rule(it) for it in named("gate_rule")],
        count_tokens=count_tokens,
    )
    values = [agent(it, stored) for it in named("agent")]
    return Belt(catalog=stored, agents={value.key: value for value in values})


def entries(document: Any, section: str) -> list[Any] | tuple[Any, ...]:
    """Return the raw entries of a section; none if it is missing or not a list."""
    listed = document.get(section) if isinstance(document, Mapping) else None
    return listed if isinstance(listed, (list, tuple)) else ()


def is_named(kind: vocabulary.KindName, entry: Any) -> bool:
    """Return whether an entry that was read has a name, so that it has a value."""
    named_by = vocabulary.KINDS[kind].named_by
    name = getattr(entry, named_by, None) if named_by else entry
    return bool(name and name.strip())


def plugin(entry: vocabulary.Plugin, categories: Iterable[str]) -> catalog.Plugin:
    """Read a plugin; the status "disabled" means that it is not active."""
    given = entry.given()
    upstream = entry.upstream and entry.upstream.given()
    return catalog.Plugin(
        **{
            **given,
            "category": _spelled(entry.category, categories),
            "block_ends": grants.parse_time(entry.block_ends),
            "status": "failed" if entry.status == "failed" else "ready",
            "active": given.get("active", True) and entry.status != "disabled",
            "upstream": schema.canonical(upstream) if upstream else "",
            "declared_by": _texts(entry.declared_by),
            "not_running": _texts(entry.not_running),
            "reject_tools": _texts(entry.reject_tools),
            "reject_all_but": _texts(entry.reject_all_but),
            "preapproved": _pairs(entry.preapproved),
        }
    )


def tool(entry: vocabulary.Tool, categories: Iterable[str], count_tokens: CountTokens | None) -> catalog.Tool:
    """Read a tool: its schemas and annotations become canonical JSON, and its tokens are counted if possible."""
    # Empty annotations are the same as none: the two must not count as different.
    given = {name: value for name, value in entry.given().items() if name != "annotations" or value}
    values: dict[str, Any] = {
        name: schema.canonical(value) if isinstance(value, dict) else value for name, value in given.items()
    }
    tokens = 0
    if count_tokens is not None and (entry.kind or "tool") == "tool":
        described = entry.description or "", given.get("input_schema", schema.EMPTY)
        tokens = count_tokens(catalog.model_json(entry.key, *described))
    problem = catalog.schema_problem(
        entry.kind or "tool",
        values.get("input_schema", schema.EMPTY_TEXT),
        values.get("output_schema", ""),
    )
    values |= {
        "category": _spelled(entry.category, categories),
        "block_ends": grants.parse_time(entry.block_ends),
        "tokens": tokens,
        "schema_problem": problem,
        "recorded_fields": _texts(entry.recorded_fields),
        "brings": _labels(entry.brings),
    }
    # Older files have hashes without a number.
    return tool_versions.renumbered(catalog.Tool(**values))


def toolkit(entry: vocabulary.Toolkit, tools: Container[str]) -> catalog.Toolkit:
    """Read a toolkit, with those of its members that exist."""
    return catalog.Toolkit(
        **{
            **entry.given(),
            "block_ends": grants.parse_time(entry.block_ends),
            "brings": _labels(entry.brings),
            "members": tuple(catalog.Member(**use.given()) for use in _uses(entry.members, tools)),
            "tool_notes": _pairs(entry.tool_notes),
            "triggers": tuple(_trigger(it) for it in entry.triggers or () if it is not None),
        }
    )


def _trigger(entry: vocabulary.Trigger) -> catalog.Trigger:
    # An empty list of patterns is ignored. An empty focus is not: it means that this message needs none of the tools.
    return catalog.Trigger(
        name=entry.name or "",
        any=_texts(entry.any) or None,
        all=tuple(_texts(group) for group in entry.all or () if group is not None) or None,
        none=_texts(entry.none),
        focus=None if entry.focus is None else _texts(entry.focus),
        tool_choice=entry.tool_choice or "auto",
    )


def loadout(entry: vocabulary.Loadout) -> catalog.Loadout:
    """Read a loadout."""
    lists = ("plugins", "categories", "discoverable", "disabled")
    read = {field: _texts(getattr(entry, field)) for field in lists}
    return catalog.Loadout(**{**entry.given(), **read, "denied_risks": _risks(entry.denied_risks)})


def sub_app(entry: vocabulary.SubApp, tools: Container[str]) -> catalog.SubApp:
    """Read a sub-app, with those of its tools that exist."""
    return catalog.SubApp(
        **{
            **entry.given(),
            "tool_names": _existing(entry.tool_names, tools),
            "agents": tuple(dict.fromkeys(_texts(entry.agents))),
        }
    )


def gate_rule(entry: vocabulary.GateRule) -> catalog.GateRule:
    """Read a gate rule; without an effect, it denies."""
    lists = ("agents", "kinds", "sub_apps", "tools", "toolkits", "plugins", "approvers")
    return catalog.GateRule(
        **{
            **entry.given(),
            **{field: tuple(dict.fromkeys(_texts(getattr(entry, field)))) for field in lists},
            "effect": entry.effect or "deny",
            "approvals": entry.approvals or 1,
            "risks": _risks(entry.risks),
            "when": "" if entry.when is None else schema.canonical(entry.when),
            "unless": "" if entry.unless is None else schema.canonical(entry.unless),
            "labels": _labels(entry.labels),
            "without": _labels(entry.without),
            "more_than": _limit(entry.more_than),
            "ends": grants.parse_time(entry.ends),
        }
    )


def _labels(names: Iterable[str | None] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_texts(names)))


def _limit(entry: vocabulary.CallLimit | None) -> call_limits.CallLimit | None:
    if entry is None:
        return None
    return call_limits.CallLimit(calls=entry.calls or 0, per=entry.per or "day", of=entry.of or "agent")


def agent(entry: vocabulary.Agent, stored: catalog.Catalog) -> agents.Agent:
    """Read an agent: split tools_config into switches and overrides, and sort initial toolkits as the allowed ones."""
    given = entry.given()
    switches, overrides = grants.split(stored, given.pop("tools_config", {}))
    allowed = _existing(entry.allowed_toolkits, stored.toolkits)
    initial = set(_texts(entry.initial_toolkits))
    budget = agents.Budget(**entry.budget.given()) if entry.budget else agents.Budget()
    return agents.Agent(
        **{
            **given,
            "tools": tuple(agents.AlwaysOn(**use.given()) for use in _uses(entry.tools, stored.tools)),
            "switches": switches,
            "overrides": overrides,
            "ends": _ends(entry.ends or {}, {**switches, **overrides}),
            "allowed_toolkits": allowed,
            "initial_toolkits": tuple(key for key in allowed if key in initial),
            # A budget with only default values is no budget.
            "budget": budget if budget != agents.Budget() else None,
            "session_loadouts": _texts(entry.session_loadouts),
            "subagent_kinds": tuple(dict.fromkeys(_texts(entry.subagent_kinds))),
            "denied_risks": _risks(entry.denied_risks),
        }
    )


def _ends(expiries: Mapping[str, vocabulary.End | None], flat: Mapping[str, bool]) -> dict[str, agents.End]:
    """Return the expiry of each switch and override that is set."""
    return {
        key: agents.End(at=at, then=end.then, by=end.by or "")
        for key, end in sorted(expiries.items())
        if key in flat and end is not None and (at := grants.parse_time(end.at)) is not None
    }


def _spelled(written: str | None, categories: Iterable[str]) -> str:
    """Return an entry's category as it is spelled in its definition; an unknown category as it is written."""
    folded = keys.fold(written or "")
    known = (name for name in (*catalog.CATEGORIES, *categories) if keys.fold(name) == folded)
    return next(known, written or "")


def _texts(texts: Iterable[str | None] | None) -> tuple[str, ...]:
    return tuple(text for text in texts or () if text is not None)


def _risks(written: Iterable[str | None] | None) -> tuple[catalog.DeniedRisk, ...]:
    """Return the denied risks in their order, whatever the order in which they are written."""
    given = set(_texts(written))
    return tuple(risk for risk in catalog.DENIED_RISKS if risk in given)


def _pairs(pairs: Mapping[str, str | None] | None) -> dict[str, str]:
    return {key: value for key, value in (pairs or {}).items() if value is not None}


def _existing(names: Iterable[str | None] | None, existing: Container[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in _texts(names) if name in existing))


def _uses(written: Iterable[fields.ToolUse | None] | None, existing: Container[str]) -> list[fields.ToolUse]:
    """Return the uses of existing tools, the first of each."""
    first: dict[str, fields.ToolUse] = {}
    for use in written or ():
        if use is not None and use.tool in existing:
            first.setdefault(use.tool, use)
    return list(first.values())
