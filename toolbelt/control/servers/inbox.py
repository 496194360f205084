"""The tools of all plugins that await review, in one list, and what their approval would bring."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolbelt import conf
from toolbelt.control import guards
from toolbelt.control.access import access_index
from toolbelt.control.servers import approvals
from toolbelt.core import agents, catalog, effects, errors, risks, tool_versions
from toolbelt.core.rules import budgets, inventory
from toolbelt.store import audit, snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """The first tools to review, those with findings first.

    ``to_review`` and ``flagged`` count all of them, ``by_plugin`` those of each plugin, whichever was asked for, and
    ``titles`` are the titles of these plugins.
    """

    changes: tuple[approvals.Change, ...]
    to_review: int
    flagged: int
    by_plugin: Mapping[str, int]
    titles: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccess:
    """The tools that an agent gets by an approval: those that are on for it, those of them that may be destructive, and
    those that it gets on request. ``exceeds_budget``: they take it over its budget, or further over it.
    """

    agent: agents.Agent
    effect: effects.Effect
    on: tuple[str, ...]
    on_request: tuple[str, ...]
    destructive: tuple[str, ...]
    exceeds_budget: bool


class NotConfirmed(errors.ConfirmationRequired):
    """An approval has to be confirmed: tools have ``findings``, as (tool, warning), or agents gain access by it."""

    def __init__(self, findings: Sequence[tuple[str, str]], gains: Sequence[NewAccess]) -> None:
        self.findings, self.gains = tuple(findings), tuple(gains)
        flags = [f"{tool}: {flag}" for tool, flag in findings]
        described = [guards.describe_effect("", None, gain.effect) for gain in gains if gain.on]
        differences = guards.summed(described) if described else {}
        super().__init__([*flags, *_reasons(gains)], {"flags": flags, **differences})


def load(plugin: str = "", *, maximum: int, first: str = "") -> Inbox:
    """Return at most ``maximum`` tools to review, ``first`` before all others; of one plugin, if it is named."""
    stored = snapshots.catalog()
    by_plugin = {name: approvals.to_review(name, stored) for name in stored.plugins}
    items = [item for name, of_plugin in by_plugin.items() if plugin in ("", name) for item in of_plugin]
    flagged = approvals.findings(stored).keys() & {item.tool.key for item in items}
    items.sort(key=lambda item: (item.tool.key not in flagged, approvals.KINDS.index(item.kind)))
    items.sort(key=lambda item: item.tool.key != first)
    return Inbox(
        changes=approvals.changes(items[:maximum], stored),
        to_review=len(items),
        flagged=len(flagged),
        by_plugin={name: len(of_plugin) for name, of_plugin in by_plugin.items() if of_plugin},
        titles={name: stored.plugins[name].title for name, of_plugin in by_plugin.items() if of_plugin},
    )


def warnings(keys: Collection[str]) -> list[tuple[str, str]]:
    """Return the warnings to read before approving these tools, as (tool, warning)."""
    found = approvals.findings(snapshots.catalog())
    return [(key, flag) for key in found if key in keys for flag in found[key]]


def check_findings(keys: Collection[str]) -> None:
    """Raise NotConfirmed if any of these tools has findings, which must be confirmed to approve it."""
    if findings := warnings(keys):
        raise NotConfirmed(findings, ())


def check(keys: Collection[str]) -> tuple[NewAccess, ...]:
    """Return the new access of each agent, if these tools are approved. Raise NotConfirmed for findings, and for new
    access that one does not expect: by several tools at once, or by a new one that may do more than read.
    """
    findings, gains = warnings(keys), new_access(keys)
    if findings or (gains and (len(keys) > 1 or brings_writing(keys))):
        raise NotConfirmed(findings, gains)
    return gains


def objections(keys: Collection[str]) -> list[tuple[str, str]]:
    """Return what providers of models would refuse of these tools, and are not sent, as (tool, objection)."""
    tools = snapshots.catalog().tools
    return [(key, said) for key in keys if key in tools for said in approvals.objections(tools[key])]


def brings_writing(keys: Collection[str]) -> bool:
    """Return whether any of these tools is new and may do more than read; a changed one was decided about before."""
    tools = [tool for key in keys if (tool := snapshots.catalog().tools.get(key)) is not None]
    return any(not tool.seen and risks.of(tool) != "read-only" for tool in tools)


def new_access(keys: Collection[str]) -> tuple[NewAccess, ...]:
    """Return the new access of each agent that gets any of these tools, if they are approved as they are now.

    Without the settings that a renamed tool takes over.
    """
    stored = snapshots.catalog()
    proposed = _approved(stored, keys)
    gained = []
    for access in access_index.load_with_catalog(stored).agents:
        after = inventory.take(proposed, access.agent, conf.KIND_LOADOUTS)
        offered = inventory.on_request(proposed, access.agent, conf.KIND_LOADOUTS, now=after)
        on = tuple(key for key in keys if key in after.active or key in after.non_tools)
        on_request = tuple(key for key in keys if key in offered)
        if on or on_request:
            gained.append(
                NewAccess(
                    agent=access.agent,
                    effect=effects.of_inventories(
                        proposed, access.inventory, after, on_request=(access.on_request, offered)
                    ),
                    on=on,
                    on_request=on_request,
                    destructive=tuple(key for key in on if risks.of(proposed.tools[key]) == "destructive"),
                    exceeds_budget=budgets.is_worsened(access.inventory.spent, after.spent),
                )
            )
    return tuple(gained)


def last_change(tool: str) -> int | None:
    """Return the newest audit entry of a tool: after an approval, the one to undo."""
    newest = audit.page(subject_kind="tool", subject_key=tool, size=1).entries
    return newest[0].id if newest else None


def _reasons(gains: Iterable[NewAccess]) -> Iterator[str]:
    """Yield in words what each agent gains, for those who confirm it."""
    for gain in gains:
        agent = gain.agent.key
        if gain.on:
            yield f"{agent} gets: {', '.join(gain.on)}."
        if gain.destructive:
            yield f"Enables destructive tools for {agent}: {', '.join(gain.destructive)}."
        if gain.on_request:
            yield f"{agent} may load: {', '.join(gain.on_request)}."
        if gain.exceeds_budget:
            yield f"{agent} is over budget afterwards."


def _approved(stored: catalog.Catalog, keys: Collection[str]) -> catalog.Catalog:
    """Return the catalog as it would be with these tools approved."""
    tools = (
        dataclasses.replace(tool, seen=True, approved=tool_versions.version(tool)) if key in keys else tool
        for key, tool in stored.tools.items()
    )
    return catalog.replace(stored, tools=tools)
