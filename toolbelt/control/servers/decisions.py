"""Approving and rejecting the versions of tools that await review, in one batch each."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.catalog import entries, renaming
from toolbelt.control.servers import approvals, client_plugins, tool_writes
from toolbelt.core import belts, catalog, errors, schema, tool_versions
from toolbelt.store import snapshots

_VERSION = re.compile(re.escape(tool_versions.NUMBER) + "sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """The approved keys, and what was carried over to new names (old name, new name), as far as possible."""

    keys: tuple[str, ...]
    carried: tuple[tuple[str, str], ...] = ()
    problems: tuple[errors.Problem, ...] = ()


def approve(
    write: writing.Write, name: str, reviewed_hashes: Mapping[str, str], *, carry_over: bool = True
) -> Approved:
    """Approve the versions that were shown: ``reviewed_hashes`` maps a tool to the hash that its change was shown with.

    They apply from the next request. If a version has changed since, raise errors.Stale and approve nothing. With
    ``carry_over``, a renamed tool gets what its previous name had: its places in toolkits and sub-apps, the agents' own
    tools and overrides, and its places in loadouts. Denials also stay with the previous name.
    """
    with writing.begin():
        write = write.in_batch()
        decided = _declared(name, _decided(name, reviewed_hashes))
        approved_before = {key: change.tool.approved for key, change in decided.items()}
        renamed = {key: decided[key].previous for key in decided if decided[key].previous}
        changes = {
            key: {
                **_approved(change.tool),
                **(
                    renaming.operator_settings(snapshots.catalog().tools[change.previous])
                    if change.previous and carry_over
                    else {}
                ),
            }
            for key, change in decided.items()
        }
        _write(write, changes, "approve")
        _withdraw_preapproved(write, name, decided)
        client_plugins.supersede(approved_before)
        problems: list[errors.Problem] = []
        if carry_over and renamed:
            over = {old: new for new, old in renamed.items()}
            problems = renaming.carry_over(write, over)
    carried = tuple((old, new) for new, old in renamed.items()) if carry_over else ()
    return Approved(keys=tuple(decided), carried=carried, problems=tuple(problems))


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
        plugin = approvals.find_reviewed_plugin(name, stored)
        listed = {
            item.tool.key: item.version_hash
            for item in approvals.to_review(name, stored)
            if tool_versions.version(item.tool) == versions.get(item.tool.key)
        }
        approved = approve(write, name, listed) if listed else Approved(keys=())
        # What is approved now needs no approval in advance, which would outlast an undo.
        others = {key: version for key, version in versions.items() if key not in approved.keys}
        kept = {key: version for key, version in plugin.preapproved.items() if key not in approved.keys}
        entries.change(write, "plugin", name, {"preapproved": {**kept, **others}})
    return approved


def reject(write: writing.Write, name: str, reviewed_hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Reject the versions that were shown: these tools are blocked for everyone. If only a tool's details changed, only
    the details are rejected.

    A tool that is unblocked later awaits review again. Raise errors.Stale as :func:`approve` does.
    """
    with writing.begin():
        decided = _decided(name, reviewed_hashes)
        changes = {key: _rejection(change) for key, change in decided.items()}
        write = write.in_batch()
        _write(write, changes, "reject")
        _withdraw_preapproved(write, name, decided)
    return tuple(decided)


def _withdraw_preapproved(write: writing.Write, name: str, keys: Collection[str]) -> None:
    """Withdraw the versions of these tools that were approved in advance: a later decision counts more."""
    stored = snapshots.catalog().plugins[name].preapproved
    kept = {key: version for key, version in stored.items() if key not in keys}
    if len(kept) < len(stored):
        entries.change(write, "plugin", name, {"preapproved": kept})


def _approved(tool: catalog.Tool) -> dict[str, Any]:
    return {
        "seen": None,
        "approved": tool_versions.version(tool),
        "details_approved": tool_versions.details_version(tool) or None,
        "approved_version": None,
    }


def _rejection(change: approvals.ReviewItem) -> dict[str, Any]:
    if change.kind != "details":
        return approvals.rejection(change.tool)
    rejected = tool_versions.REJECTED + tool_versions.details_version(change.tool)
    return {"details_approved": rejected, "approved_version": None}


def _decided(name: str, reviewed_hashes: Mapping[str, str]) -> dict[str, approvals.ReviewItem]:
    """Return the tools that a decision concerns, if each is as it was shown; those already decided are skipped."""
    stored = snapshots.catalog()
    approvals.find_reviewed_plugin(name, stored)
    approvals.check_hashes(name, reviewed_hashes, stored)
    to_review = {item.tool.key: item for item in approvals.to_review(name, stored)}
    return {key: to_review[key] for key in reviewed_hashes if key in to_review}


def _declared(name: str, decided: Mapping[str, approvals.ReviewItem]) -> dict[str, approvals.ReviewItem]:
    """Return the decided tools without those that an adopted file only named, and that no program has declared: they
    have no text that could be approved. Raise errors.Refused if there are no others.
    """
    is_of_client = snapshots.catalog().plugins[name].runner == "client"
    named = [key for key, item in decided.items() if is_of_client and _is_only_named(item.tool)]
    if named and len(named) == len(decided):
        raise errors.Refused(
            f"No program has declared {named[0]} yet, so there is nothing to approve: start it first."
        )
    return {key: item for key, item in decided.items() if key not in named}


def _is_only_named(tool: catalog.Tool) -> bool:
    is_empty = schema.mapping(tool.input_schema, schema.EMPTY) == schema.EMPTY
    return is_empty and not tool.description and not tool.declared_versions and not tool.approved


def _write(write: writing.Write, changes: Mapping[str, Mapping[str, Any]], act: str) -> None:
    stored, names = snapshots.catalog(), entries.name_index()
    to_write = []
    for key, change in changes.items():
        merged = {**belts.entry("tool", stored.tools[key]), **change}
        to_write.append({field: value for field, value in merged.items() if value is not None})
    written = tool_writes.store_tools(
        write, to_write, source="the approval", stored=stored, names=names, act=act
    )
    if written.problems:
        raise errors.Invalid(written.problems)
