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


def is_raised(tool: catalog.Tool) -> bool:
    """Return whether the tool states a higher risk than its approved version, while another version waits."""
    if not tool.approved_version or tool.kind != "tool":
        return False
    approved = schema.mapping(tool.approved_version, {})
    # Of some approved versions, only the hash is stored.
    before = approved.get("annotations", {})
    return isinstance(before, Mapping) and raised(before, schema.mapping(tool.annotations, {})) is not None


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
