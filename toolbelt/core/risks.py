"""The risk of calling a tool, from its annotations (MCP: tool annotations; dashboard: risk badge)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal

from toolbelt.core import catalog, schema

Risk = Literal["read-only", "writes", "destructive"]
# What the screens show: the risk, or that a tool does not state it.
Stated = Literal["read-only", "writes", "destructive", "not stated"]
RISKS: tuple[Risk, ...] = ("read-only", "writes", "destructive")
# What a tool states that has a risk which can be denied.
_STATED: Mapping[catalog.DeniedRisk, Stated] = {
    "writes": "writes",
    "destructive": "destructive",
    "unstated": "not stated",
}


def of(tool: catalog.Tool) -> Risk:
    """Return the tool's risk. A tool without annotations counts as destructive, which is MCP's default.

    Prompts, resources and other entries are only read.
    """
    if tool.kind != "tool":
        return "read-only"
    return _of_annotations(tool.annotations)


def stated(tool: catalog.Tool) -> Stated:
    """Return the risk that the tool states; "not stated" if it is only MCP's default that counts."""
    return "read-only" if tool.kind != "tool" else _stated_by_annotations(tool.annotations)


def is_stated(annotations: Mapping[str, Any]) -> bool:
    """Return whether annotations state the risk, so that it is not MCP's default."""
    return annotations.get("readOnlyHint") is True or isinstance(annotations.get("destructiveHint"), bool)


def raised(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Risk, Risk] | None:
    """Return the risk before and after, if these annotations of a tool state a higher risk than before."""
    risk, risk_now = of_hints(before), of_hints(after)
    return (risk, risk_now) if RISKS.index(risk_now) > RISKS.index(risk) else None


def is_restated(tool: catalog.Tool) -> bool:
    """Return whether the tool states another risk than its approved version, while another version waits. Of a version
    that a belt approved by its hash alone, no risk is known.
    """
    return bool(schema.mapping(tool.approved_version, {})) and _approved(tool) != stated(tool)


def tools_with(stored: catalog.Catalog, risk: catalog.DeniedRisk) -> frozenset[str]:
    """Return the tools that an agent or a loadout turns off if it denies this risk.

    A tool has the risk that it states, and the one that its approved version stated, while another version waits: a
    server cannot leave a denial by stating another risk than the one that was approved.
    """
    return _by_risk(stored)[risk]


@catalog.derived
def _by_risk(stored: catalog.Catalog) -> Mapping[catalog.DeniedRisk, frozenset[str]]:
    by_stated: dict[Stated, set[str]] = {}
    for tool in stored.tools.values():
        by_stated.setdefault(stated(tool), set()).add(tool.key)
        if tool.approved_version:
            by_stated.setdefault(_approved(tool), set()).add(tool.key)
    return {risk: frozenset(by_stated.get(_STATED[risk], ())) for risk in catalog.DENIED_RISKS}


def _approved(tool: catalog.Tool) -> Stated:
    """Return the risk that the approved version states, whose fields are stored."""
    if tool.kind != "tool":
        return "read-only"
    annotations = schema.mapping(tool.approved_version, {}).get("annotations")
    hints = annotations if isinstance(annotations, Mapping) else {}
    return of_hints(hints) if is_stated(hints) else "not stated"


@functools.lru_cache(maxsize=256)  # many tools have the same annotations
def _of_annotations(annotations: str) -> Risk:
    return of_hints(schema.mapping(annotations, {}))


@functools.lru_cache(maxsize=256)
def _stated_by_annotations(annotations: str) -> Stated:
    hints = schema.mapping(annotations, {})
    return of_hints(hints) if is_stated(hints) else "not stated"


def of_hints(hints: Mapping[str, Any]) -> Risk:
    """Return the risk that annotations state; without any, MCP's default."""
    if hints.get("readOnlyHint") is True:
        return "read-only"
    return "writes" if hints.get("destructiveHint") is False else "destructive"
