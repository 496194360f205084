"""How does a whole configuration come in, or go out, as one file?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import actors, entries, ordering, writing
from toolbelt.core import belts, errors
from toolbelt.store import entries as rows
from toolbelt.store import revisions

# In the order in which they refer to each other: what is named stands before what names it.
SECTIONS: Mapping[str, str] = {
    "categories": "category",
    "plugins": "plugin",
    "tools": "tool",
    "toolkits": "toolkit",
    "loadouts": "loadout",
    "agents": "agent",
    "sub_apps": "sub_app",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did: how many entries it created and changed, and how many were as the belt says already.

    ``ordered`` names the kinds of entries that stand in another order since.
    """

    created: int
    changed: int
    same: int
    ordered: tuple[str, ...] = ()


def export() -> dict[str, Any]:
    """Give the whole configuration as a belt. It holds no secret, no session and no token."""
    return rows.export()


def check(document: Mapping[str, Any]) -> list[errors.Problem]:
    """Say what stands against importing this belt now: judged together with what is stored, which it may refer to."""
    return belts.check(_with_stored(document, rows.export()))


def import_(actor: actors.Actor, document: Mapping[str, Any], *, reason: str = "") -> Imported:
    """Bring every entry of the belt about, in its order, in one transaction; what it does not name stays as it is.

    Each entry that is created or changed is audited; all share a batch. Raises errors.Invalid with every problem,
    judged together with what stands already, and then nothing is written.
    """
    # Judged before the lock is taken, because that takes long; judged again only if somebody wrote meanwhile.
    judged, problems = revisions.number(), check(document)
    batch = writing.new_batch()
    counted = {"create": 0, "change": 0, "same": 0}
    with writing.begin():
        if revisions.number() != judged:
            problems = check(document)
        if problems:
            raise errors.Invalid(problems)
        stored = {
            (kind, _name(kind, entry)): _entry(kind, entry)
            for section, kind in SECTIONS.items()
            for entry in rows.export().get(section, ())
        }
        owned: list[errors.Problem] = []
        for section, kind in SECTIONS.items():
            for written in document.get(section) or ():
                entry, name = _entry(kind, written), _name(kind, written)
                before = stored.get((kind, name))
                after = before if before == entry else rows.write(kind, dict(entry))
                if after == before:
                    counted["same"] += 1
                    continue
                counted["create" if before is None else "change"] += 1
                owned += entries.owned_by_code(kind, before, entries.differences(before, after)[1])
                entries.recorded(actor, kind, name, before, after, reason=reason, batch=batch)
        if owned:
            raise errors.Invalid(owned)
        ordered = tuple(
            kind
            for section, kind in SECTIONS.items()
            if rows.is_ordered(kind)
            and not ordering.put(
                actor, kind, _names(document, section), reason=reason, batch=batch
            ).is_nothing
        )
    return Imported(
        created=counted["create"], changed=counted["change"], same=counted["same"], ordered=ordered
    )


def _entry(kind: str, written: Any) -> Mapping[str, Any]:
    return {"name": written} if kind == "category" else written


def _name(kind: str, written: Any) -> str:
    return str(_entry(kind, written)[entries.naming(kind)])


def _names(document: Mapping[str, Any], section: str) -> list[str]:
    return [_name(SECTIONS[section], written) for written in document.get(section) or ()]


def _with_stored(document: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Give the belt with what is stored behind it, where the belt does not name the same: so it may refer to that.

    The belt's entries stand first, as they are written, so that a problem's path counts as its writer does.
    """
    merged: dict[str, Any] = {**stored, **document}
    for section, kind in SECTIONS.items():
        written = document.get(section)
        if not isinstance(written, list):
            continue
        naming = entries.naming(kind)
        given = (entry.get(naming) if isinstance(entry, dict) else entry for entry in written)
        named = {name for name in given if isinstance(name, str)}
        kept = [entry for entry in stored.get(section, ()) if _name(kind, entry) not in named]
        merged[section] = [*written, *kept]
    return merged
