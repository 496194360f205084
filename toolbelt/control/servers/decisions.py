"""Approving and rejecting the versions of tools that await review, in one batch each."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.catalog import entries, renaming
from toolbelt.control.servers import approvals, client_plugins, rejections, tool_writes
from toolbelt.core import belts, catalog, errors, tool_versions
from toolbelt.store import snapshots

_VERSION = re.compile(re.escape(tool_versions.NUMBER) + "sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """The approved keys, and what was carried over to new names (old name, new name), as far as possible."""

    keys: tuple[str, ...]
    carried: tuple[tuple[str, str], ...] = ()
    problems: tuple[errors.Problem, ...] = ()


def approve(
    write: writing.Write, reviewed_hashes: Mapping[str, str], *, plugin: str = "", carry_over: bool = True
) -> Approved:
    """Approve the versions that were shown: ``reviewed_hashes`` maps a tool to the hash that its change was shown with.

    They apply from the next request. Tools of upstream servers and of agents' programs are held to that version; tools
    in code count as seen and continue to follow the code. If a version has changed since, raise errors.Stale and
    approve nothing; raise errors.NotFound for what is no tool to review (in this ``plugin``, if it is named). With
    ``carry_over``, a renamed tool gets what its previous name had: its places in toolkits and sub-apps, the agents' own
    tools and overrides, and its places in loadouts. Denials also stay with the previous name.
    """
    carried: dict[str, str] = {}
    with writing.begin():
        write = write.in_batch()
        decided = {name: _declared(name, items) for name, items in _decided(reviewed_hashes, plugin).items()}
        for name, items in decided.items():
            renamed = {key: item.previous for key, item in items.items() if item.previous and carry_over}
            stored = snapshots.catalog()
            changes = {
                key: _approval(item.tool, stored)
                | (renaming.operator_settings(stored.tools[renamed[key]]) if key in renamed else {})
                for key, item in items.items()
            }
            _write(write, name, changes, "approve")
            client_plugins.supersede({key: item.tool.approved for key, item in items.items()})
            carried |= {old: new for new, old in renamed.items()}
        problems = renaming.carry_over(write, carried) if carried else []
    keys = tuple(key for items in decided.values() for key in items)
    return Approved(keys=keys, carried=tuple(carried.items()), problems=tuple(problems))


def preapprove(write: writing.Write, name: str, versions: Mapping[str, str]) -> Approved:
    """Approve versions by their hash, also those that are not declared or listed yet: they need no review then.

    Return what was approved now. A tool has one version that is approved in advance: the last. Raise errors.Invalid for
    what is not the hash of a version.
    """
    problems = [
        errors.Problem(path=key, message=f"{version!r} is not the hash of a version, such as 2:sha256:….")
        for key, version in versions.items()
        if not _VERSION.fullmatch(version)
    ]
    if problems:
        raise errors.Invalid(problems)
    with writing.begin():
        write = write.in_batch()
        stored = snapshots.catalog()
        plugin = approvals.find(name, *approvals.HELD, stored=stored)
        listed = {
            item.tool.key: item.version_hash
            for item in approvals.to_review(name, stored)
            if tool_versions.version(item.tool) == versions.get(item.tool.key)
        }
        approved = approve(write, listed, plugin=name) if listed else Approved(keys=())
        # What is approved now needs no approval in advance, which would outlast an undo.
        others = {key: version for key, version in versions.items() if key not in approved.keys}
        kept = {key: version for key, version in plugin.preapproved.items() if key not in approved.keys}
        entries.change(write, "plugin", name, {"preapproved": {**kept, **others}})
    return approved


def reject(write: writing.Write, reviewed_hashes: Mapping[str, str], *, plugin: str = "") -> tuple[str, ...]:
    """Reject the versions that were shown: these tools are blocked for everyone. If only a tool's details changed, only
    the details are rejected.

    A tool that is unblocked later awaits review again. Raise as :func:`approve` does.
    """
    with writing.begin():
        write, decided = write.in_batch(), _decided(reviewed_hashes, plugin)
        for name, items in decided.items():
            _write(write, name, {key: rejections.fields_of(item) for key, item in items.items()}, "reject")
    return tuple(key for items in decided.values() for key in items)


def keep(write: writing.Write, reviewed_hashes: Mapping[str, str], *, plugin: str = "") -> tuple[str, ...]:
    """Keep the approved descriptions of these tools, whatever their server lists from now on. Each is a change of its
    own, and ends the review of another description.

    Raise errors.Refused if more than the description of one changed, and otherwise as :func:`approve` does.
    """
    with writing.begin():
        write, decided = write.in_batch(), _decided(reviewed_hashes, plugin)
        keys = [key for items in decided.values() for key in items]
        for item in (item for items in decided.values() for item in items.values()):
            if not approvals.can_keep(item, snapshots.catalog()):
                message = f"{item.tool.key} has no other approved description to keep: approve or reject it."
                raise errors.Refused(message)
        for key in keys:
            entries.change(write, "tool", key, {"keep_description": True})
    return tuple(keys)


def set_kept(
    write: writing.Write, name: str, tools: Collection[str] = (), *, on: bool = True
) -> tuple[writing.Change, ...]:
    """Keep the approved descriptions of a server's tools, or follow the server again: of these tools, or of all,
    also later ones, if none is named. Raise errors.NotFound.
    """
    value = True if on else None
    with writing.begin():
        stored, write = snapshots.catalog(), write.in_batch()
        approvals.find(name, "upstream", stored=stored)
        of_server = stored.tools_of_plugin.get(name, ())
        for key in tools:
            if key not in of_server:
                raise errors.NotFound(f"tool of {name}", key, of_server)
        if not tools:
            return (entries.change(write, "plugin", name, {"keep_descriptions": value}),)
        return tuple(entries.change(write, "tool", key, {"keep_description": value}) for key in tools)


def _approval(tool: catalog.Tool, stored: catalog.Catalog) -> dict[str, Any]:
    version = tool_versions.version(tool)
    if stored.runner(tool) != "code":
        details = tool_versions.details_version(tool) or None
        return {
            "seen": None,
            "approved": version,
            "details_approved": details,
            "approved_version": None,
            "varies": None,
        }
    # A tool that was held to a version is held to this one from now on; the others follow the code.
    is_held = tool.approved and not tool_versions.is_rejected(tool)
    return {"seen": None, "approved": version if is_held else None, "approved_version": None}


def _decided(reviewed_hashes: Mapping[str, str], plugin: str) -> dict[str, dict[str, approvals.ReviewItem]]:
    """Return the tools that a decision concerns by plugin, if each is as it was shown; those already decided are
    skipped.
    """
    stored = snapshots.catalog()
    if plugin:
        approvals.find(plugin, stored=stored)
    approvals.check_hashes(reviewed_hashes, plugin)
    names = dict.fromkeys(stored.tools[key].plugin for key in reviewed_hashes)
    to_review = {name: {item.tool.key: item for item in approvals.to_review(name, stored)} for name in names}
    return {
        name: {key: items[key] for key in reviewed_hashes if key in items}
        for name, items in to_review.items()
    }


def _declared(name: str, items: Mapping[str, approvals.ReviewItem]) -> dict[str, approvals.ReviewItem]:
    """Return the decided tools without those that an adopted file only named, and that no program has declared: they
    have no text that could be approved. Raise errors.Refused if there are no others.
    """
    is_of_client = snapshots.catalog().plugins[name].runner == "client"
    named = [key for key, item in items.items() if is_of_client and _is_undeclared(item.tool)]
    if named and len(named) == len(items):
        raise errors.Refused(
            f"No program has declared {named[0]} yet, so there is nothing to approve: start it first."
        )
    return {key: item for key, item in items.items() if key not in named}


def _is_undeclared(tool: catalog.Tool) -> bool:
    return tool_versions.is_only_named(tool) and not tool.approved


def _write(write: writing.Write, name: str, changes: Mapping[str, Mapping[str, Any]], act: str) -> None:
    """Write what was decided about tools of one plugin. A later decision counts more than an approval in advance."""
    stored, names = snapshots.catalog(), entries.name_index()
    plugin = stored.plugins[name]
    if plugin.runner == "code":
        for key, change in changes.items():
            entries.change(write.replace(action=f"tool.{act}"), "tool", key, change)
        return
    to_write = []
    for key, change in changes.items():
        merged = {**belts.entry("tool", stored.tools[key]), **change}
        to_write.append({field: value for field, value in merged.items() if value is not None})
    written = tool_writes.store_tools(
        write, to_write, source="the approval", stored=stored, names=names, act=act
    )
    if written.problems:
        raise errors.Invalid(written.problems)
    kept = {key: version for key, version in plugin.preapproved.items() if key not in changes}
    if len(kept) < len(plugin.preapproved):
        entries.change(write, "plugin", name, {"preapproved": kept})
