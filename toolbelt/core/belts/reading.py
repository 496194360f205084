"""Which value does an entry stand for?

Reading never refuses and never raises: what cannot be understood is passed over (a wrong type, a name that
nothing has), as if it were not there. Of a sound entry nothing is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import agents, catalog, grants, keys, schema
from toolbelt.core.belts import vocabulary

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belt:
    """A whole configuration: what exists, and who consumes it, in order and by key."""

    catalog: catalog.Catalog
    agents: Mapping[str, agents.Agent]


def belt(document: Any, *, count_tokens: CountTokens | None = None, number: int = 0, stamp: str = "") -> Belt:
    """Read a whole document."""
    written = dict.fromkeys(_read(document, "category"))
    categories = tuple(name for name in written if name not in catalog.CATEGORIES)
    tools = {one["key"]: tool(one, categories, count_tokens) for one in _read(document, "tool")}
    stored = catalog.compile_(
        number=number,
        stamp=stamp,
        categories=categories,
        plugins=[plugin(one, categories) for one in _read(document, "plugin")],
        tools=tools.values(),
        toolkits=[toolkit(one, tools) for one in _read(document, "toolkit")],
        loadouts=[loadout(one) for one in _read(document, "loadout")],
        sub_apps=[sub_app(one, tools) for one in _read(document, "sub_app")],
    )
    read = [agent(one, stored) for one in _read(document, "agent")]
    return Belt(catalog=stored, agents={one.key: one for one in read})


def entries(document: Any, section: str) -> list[Any] | tuple[Any, ...]:
    """Give the raw entries of a section; none where it is not given or not a list."""
    found = document.get(section) if isinstance(document, Mapping) else None
    return found if isinstance(found, (list, tuple)) else ()


def clean(kind: vocabulary.KindName, entry: Any) -> Any:
    """Give the fields of an entry that are given and fit; None for an entry without a name."""
    spoken = vocabulary.KINDS[kind]
    read = spoken.shape.read(entry)
    name = spoken.name_of(read)
    return read if isinstance(name, str) and name.strip() else None


def _read(document: Any, kind: vocabulary.KindName) -> list[Any]:
    read = (clean(kind, entry) for entry in entries(document, vocabulary.KINDS[kind].section))
    return [one for one in read if one is not None]


def plugin(given: Mapping[str, Any], categories: Iterable[str]) -> catalog.Plugin:
    """Read a plugin; a status of "disabled" is the operator's word for one that is not active."""
    status = given.get("status", "ready")
    return catalog.Plugin(
        **{
            **given,
            "category": _spelled(given, categories),
            "status": "failed" if status == "failed" else "ready",
            "active": given.get("active", True) and status != "disabled",
            "upstream": schema.canonical(given["upstream"]) if given.get("upstream") else "",
        }
    )


def tool(
    given: Mapping[str, Any], categories: Iterable[str], count_tokens: CountTokens | None
) -> catalog.Tool:
    """Read a tool; its schemas and annotations become canonical texts, its tokens are counted where they can be."""
    texts = {
        field: schema.canonical(given[field])
        for field in ("input_schema", "output_schema", "annotations", "approved_version")
        if field in given
    }
    if texts.get("annotations") == "{}":
        # No hint given is no annotations: the two must not count as different.
        del texts["annotations"]
        given = {key: value for key, value in given.items() if key != "annotations"}
    tokens = 0
    if count_tokens is not None:
        described = given.get("description", ""), given.get("input_schema", schema.EMPTY)
        tokens = count_tokens(catalog.sent(given["key"], *described))
    return catalog.Tool(**{**given, "category": _spelled(given, categories), **texts, "tokens": tokens})


def toolkit(given: Mapping[str, Any], tools: Container[str]) -> catalog.Toolkit:
    """Read a toolkit with those of its members that are tools."""
    return catalog.Toolkit(
        **{
            **given,
            "members": tuple(catalog.Member(**use) for use in _uses(given, "members", tools)),
            "tool_notes": {
                key: note for key, note in given.get("tool_notes", {}).items() if note is not None
            },
            "triggers": tuple(_trigger(one) for one in given.get("triggers", ()) if one is not None),
        }
    )


def _trigger(given: Mapping[str, Any]) -> catalog.Trigger:
    # An empty list of patterns says nothing; an empty focus does: this message asks for none of the tools.
    groups = tuple(_texts(group) for group in given.get("all", ()) if group is not None)
    return catalog.Trigger(
        name=given.get("name", ""),
        any=_texts(given.get("any", ())) or None,
        all=groups or None,
        none=_texts(given.get("none", ())),
        focus=_texts(given["focus"]) if "focus" in given else None,
        tool_choice=given.get("tool_choice", "auto"),
    )


def loadout(given: Mapping[str, Any]) -> catalog.Loadout:
    """Read a loadout."""
    lists = ("plugins", "categories", "discoverable", "disabled")
    return catalog.Loadout(**{**given, **{field: _texts(given.get(field, ())) for field in lists}})


def sub_app(given: Mapping[str, Any], tools: Container[str]) -> catalog.SubApp:
    """Read a sub-app with those of its tools that there are."""
    return catalog.SubApp(
        **{
            **given,
            "tool_names": _distinct(given, "tool_names", tools),
            "agents": tuple(dict.fromkeys(_texts(given.get("agents", ())))),
        }
    )


def agent(given: Mapping[str, Any], stored: catalog.Catalog) -> agents.Agent:
    """Read an agent: its flat tools_config is parted, its initial toolkits stand in the order of the allowed ones."""
    fields = dict(given)
    flat = fields.pop("tools_config", {})
    switches, overrides = grants.split(stored, flat)
    allowed = _distinct(given, "allowed_toolkits", stored.toolkits)
    initial = set(_texts(given.get("initial_toolkits", ())))
    budget = agents.Budget(**given.get("budget", {}))
    return agents.Agent(
        **{
            **fields,
            "tools": tuple(agents.AlwaysOn(**use) for use in _uses(given, "tools", stored.tools)),
            "switches": switches,
            "overrides": overrides,
            "ends": _ends(given.get("ends", {}), {**switches, **overrides}),
            "allowed_toolkits": allowed,
            "initial_toolkits": tuple(key for key in allowed if key in initial),
            # A budget that limits nothing, with the usual consequence, is none.
            "budget": budget if budget != agents.Budget() else None,
            "session_loadouts": tuple(_texts(given.get("session_loadouts", ()))),
            "subagent_kinds": tuple(dict.fromkeys(_texts(given.get("subagent_kinds", ())))),
        }
    )


def _ends(given: Mapping[str, Any], flat: Mapping[str, bool]) -> dict[str, agents.End]:
    """Read the ends of what is set."""
    return {
        key: agents.End(at=at, then=end.get("then"), by=end.get("by", ""))
        for key, end in sorted(given.items())
        if key in flat and end is not None and (at := grants.moment(end.get("at"))) is not None
    }


def _spelled(given: Mapping[str, Any], categories: Iterable[str]) -> str:
    """Give the entry's category as it is spelled where it is defined; a category of no one as it is written."""
    written: str = given.get("category", "")
    folded = keys.fold(written)
    return next((name for name in (*catalog.CATEGORIES, *categories) if keys.fold(name) == folded), written)


def _texts(read: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(text for text in read if text is not None)


def _distinct(given: Mapping[str, Any], field: str, known: Container[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in _texts(given.get(field, ())) if name in known))


def _uses(given: Mapping[str, Any], field: str, known: Container[str]) -> list[dict[str, Any]]:
    """Give the uses of known tools, the first of each."""
    first: dict[str, dict[str, Any]] = {}
    for use in given.get(field, ()):
        if use is not None and use["tool"] in known:
            first.setdefault(use["tool"], use)
    return list(first.values())
