"""Writing of values as entries and of configurations as documents: the inverse of reading.

Fields follow the order of the vocabulary and entries the stored order; default values are left out.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from toolbelt.core import agents, catalog, grants
from toolbelt.core.belts import reading, secret_options, vocabulary


def document(
    belt: reading.Belt, *, with_secrets: bool = False, only: vocabulary.KindName | None = None
) -> dict[str, Any]:
    """Return a whole configuration as a document, or ``only`` one kind; loading it returns the same configuration.
    Empty sections are left out, and, without ``with_secrets``, secrets in options are withheld.
    """
    stored = belt.catalog
    values: Mapping[vocabulary.KindName, Iterable[Any]] = {
        "category": (name for name in stored.categories if name not in catalog.CATEGORIES),
        "plugin": stored.plugins.values(),
        "tool": stored.tools.values(),
        "toolkit": stored.toolkits.values(),
        "loadout": stored.loadouts.values(),
        "agent": belt.agents.values(),
        "sub_app": stored.sub_apps.values(),
        "gate_rule": stored.gate_rules.values(),
    }
    written = {
        kind.section: [entry(name, value, with_secrets=with_secrets) for value in values[name]]
        for name, kind in vocabulary.KINDS.items()
        if only in (None, name)
    }
    return {section: entries for section, entries in written.items() if entries}


def entry(kind: vocabulary.KindName, value: Any, *, with_secrets: bool = False) -> Any:
    """Return the entry for a value.

    Without ``with_secrets``, secrets in options are withheld: :func:`secret_options.restored` puts back what is stored.
    """
    if isinstance(value, str):
        return value
    written = _fields(value, vocabulary.KINDS[kind].fields)
    return written if with_secrets else secret_options.withheld(written)


def _fields(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a value that differ from their defaults."""
    defaults = {
        field.name: field.default_factory() if callable(field.default_factory) else field.default
        for field in dataclasses.fields(value)
    }
    written = {}
    for name in names:
        # Switches and overrides are written as one field.
        field_value = value.tools_config() if name == "tools_config" else getattr(value, name)
        if field_value != defaults.get(name, {}):
            written[name] = _FORMS.get(name, _plain)(field_value)
    return written


def _in_order(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a document in the order of the vocabulary."""
    return {name: document[name] for name in names if name in document}


def _plain(value: Any) -> Any:
    """Return JSON values unchanged, and tuples as lists."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _uses(uses: Iterable[Any]) -> list[Any]:
    """Return the uses of tools; a use without options is the tool's key, as a rule's tools are."""
    return [
        use
        if isinstance(use, str)
        else use.tool
        if use.options is None
        else {"tool": use.tool, "options": dict(use.options)}
        for use in uses
    ]


def _ends(expiries: Mapping[str, agents.End] | datetime) -> dict[str, Any] | str:
    """Return the expiries by key, in which a tool that is unset afterwards needs no ``then``; or a rule's end."""
    if isinstance(expiries, datetime):
        return grants.format_time(expiries)
    ends = {}
    for key, end in sorted(expiries.items()):
        written: dict[str, Any] = {"at": grants.format_time(end.at), "then": end.then, "by": end.by}
        ends[key] = {name: value for name, value in written.items() if value not in (None, "")}
    return ends


_FORMS: Mapping[str, Callable[[Any], Any]] = {
    "input_schema": json.loads,
    "output_schema": json.loads,
    "annotations": json.loads,
    "details": json.loads,
    "approved_version": json.loads,
    "repairs": json.loads,
    "when": json.loads,
    "unless": json.loads,
    "upstream": lambda text: _in_order(json.loads(text), vocabulary.Upstream.model_fields),
    "members": _uses,
    "tools": _uses,
    "triggers": lambda triggers: [_fields(trigger, vocabulary.Trigger.model_fields) for trigger in triggers],
    "ends": _ends,
    "block_ends": grants.format_time,
    "more_than": lambda limit: _fields(limit, vocabulary.CallLimit.model_fields),
    "budget": lambda budget: _fields(budget, vocabulary.AgentBudget.model_fields),
}
