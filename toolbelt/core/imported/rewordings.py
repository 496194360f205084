"""Descriptions that differ from the approved one, while everything else that an approval covers is the same.

Some servers write a date, a directory, a host name or an unordered set into a description, so that each of their
processes lists another one. That is no change that an operator has to approve, and the rules are:

1. What an unused connection lists counts for all. If only a description differs from the approved one, further unused
   connections are listed. If all list the same, the server changed the tool, and it is held. If they differ, or the
   approved description returns, it differs between processes: the tool *varies*, which is a finding, and agents keep
   the approved version. That is true until an operator decides, or the server states another name or version.
2. A connection that lists another description than the approved one refuses only its own calls.
3. If an operator keeps the approved description, of a tool or of all tools of a server, other descriptions neither hold
   the tool nor refuse calls.

In all of these, models receive the approved description only, and the schema, like everything else that the version of
an entry covers, is compared as always: a server gains nothing by listing several descriptions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.core import catalog, tool_versions
from toolbelt.core.imported import cleaning, importing, non_tool_importing

# How many further connections are listed to find out whether a description differs between processes. An unordered set
# of two elements is printed in the same order by all of them once in eight times.
MAX_LISTED_AGAIN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of a server beside its list: the same entries as other unused connections listed them at the same
    time, by kind and name, and whether its name and version are those that it stated the last time.
    """

    again: Mapping[tuple[catalog.Kind, str], tuple[importing.Definition, ...]] = field(default_factory=dict)
    is_same_server: Callable[[], bool] = lambda: False


def is_approved(now: catalog.Tool, listed: importing.Definition) -> bool:
    """Return whether a listed entry is the approved version of the stored one. An entry that awaits its first review is
    compared with what is stored.
    """
    approved = now.approved or tool_versions.version(now)
    read = (listed.tool(), listed.unrepaired())
    return any(tool is not None and tool_versions.is_version(tool, approved) for tool in read)


def is_rewording(now: catalog.Tool, listed: importing.Definition) -> bool:
    """Return whether a listed entry differs from the approved version of the stored one in its description only."""
    if is_approved(now, listed):
        return False
    approved = tool_versions.approved_description(now)
    return is_approved(now, dataclasses.replace(listed, description=approved))


def settled(
    now: catalog.Tool, plugin: catalog.Plugin, listed: importing.Definition, evidence: Evidence
) -> tuple[importing.Definition, bool]:
    """Return the definition to store for a stored entry, and whether its description differs between processes."""
    if not plugin.upstream:
        return listed, False
    approved = tool_versions.approved_description(now)
    is_reworded = is_rewording(now, listed)
    if not is_reworded and not is_approved(now, listed):
        return listed, False
    if is_reworded and now.seen and catalog.keeps_description(now, plugin):
        return dataclasses.replace(listed, description=approved), False
    returned = not is_reworded and tool_versions.is_reworded(now)
    if (now.varies or returned) and evidence.is_same_server():
        varies = True
    else:
        others = (dataclasses.replace(other, key=now.key) for other in evidence.again.get(_name(listed), ()))
        varies = is_reworded and any(
            other.description != listed.description
            for other in others
            if is_approved(now, other) or is_rewording(now, other)
        )
    if varies and (not now.seen or (tool_versions.is_reworded(now) and (is_reworded or now.varies))):
        # The description that awaits a decision stays: each process would replace it by its own.
        listed = dataclasses.replace(listed, description=now.description)
    return listed, varies


def is_unconfirmed(
    stored: catalog.Catalog, plugin: catalog.Plugin, listing: importing.ServerListing, *, is_same_server: bool
) -> bool:
    """Return whether further unused connections have to be listed to record this list: an entry differs only in its
    description, and whether that differs between processes is not known.
    """
    return any(
        is_rewording(now, definition)
        for now, definition in _other_descriptions(stored, plugin, listing)
        if not (now.varies and is_same_server)
        and not (now.seen and catalog.keeps_description(now, plugin))
        # Otherwise it is in review already, as it is listed now.
        and definition.description != (now.description if now.seen else None)
    )


def _other_descriptions(
    stored: catalog.Catalog, plugin: catalog.Plugin, listing: importing.ServerListing
) -> Iterator[tuple[catalog.Tool, importing.Definition]]:
    """Yield the stored entries that the list describes in other words, and their listed definitions."""
    lists: dict[catalog.Kind, tuple[Mapping[str, Any], ...]] = {"tool": listing.tools, **listing.non_tools}
    by_name = {
        (tool.kind, catalog.name_at_server(tool, plugin.namespace)): tool
        for key in stored.tools_of_plugin.get(plugin.name, ())
        if not (tool := stored.tools[key]).retired
    }
    for kind, entry in ((kind, entry) for kind, entries in lists.items() for entry in entries):
        name, described = (
            entry.get(non_tool_importing.IDENTIFIED_BY.get(kind, "name")),
            entry.get("description"),
        )
        now = by_name.get((kind, name)) if isinstance(name, str) else None
        text = described if isinstance(described, str) else ""
        # Most entries are as they were, and converting all of them takes long.
        if now is None or cleaning.text(
            text, importing.MAX_DESCRIPTION_LENGTH
        ) == tool_versions.approved_description(now):
            continue
        definition = (
            importing.definition(entry, plugin.namespace)
            if now.kind == "tool"
            else non_tool_importing.definition(now.kind, entry, plugin.namespace)
        )
        if not isinstance(definition, str):
            yield now, dataclasses.replace(definition, key=now.key)


def _name(definition: importing.Definition) -> tuple[catalog.Kind, str]:
    return definition.kind, definition.name
