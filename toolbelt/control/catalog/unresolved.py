"""Names in loadouts that do not exist (docs/semantics.md: Loadouts).

They are kept, because the tool or plugin may be added later, and shown. A name in ``disabled`` must be confirmed: a
misspelt denial denies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolbelt.core import belts, catalog, errors, keys, loadouts
from toolbelt.store import snapshots

Entry = Mapping[str, Any]
Unresolved = loadouts.Unresolved


def find_all(stored: catalog.Catalog | None = None) -> tuple[Unresolved, ...]:
    """Return the names in the stored loadouts that do not exist, in their order."""
    stored = snapshots.catalog() if stored is None else stored
    return tuple(
        entry for loadout in stored.loadouts.values() for entry in loadouts.unresolved(stored, loadout)
    )


def of_entry(stored: catalog.Catalog, entry: Entry) -> tuple[Unresolved, ...]:
    """Return the names in a loadout's valid entry that do not exist."""
    return loadouts.unresolved(stored, belts.value("loadout", entry, stored))


def new_denials(entries: Iterable[Unresolved], now: Entry | None) -> tuple[Unresolved, ...]:
    """Return the disabled names among these that the loadout did not have before."""
    denied = {keys.fold(name) for name in (now or {}).get("disabled", ())}
    return tuple(
        entry for entry in entries if entry.field == "disabled" and keys.fold(entry.name) not in denied
    )


def as_problem(entry: Unresolved) -> errors.Problem:
    """Return an entry as a problem, with its path in a belt."""
    path = f"{belts.address('loadout', {'name': entry.loadout})}.{entry.field}[{entry.position}]"
    return errors.Problem(path=path, message=entry.message)


def require_confirmation(now: Entry | None, entry: Entry) -> None:
    """Raise ConfirmationRequired for a loadout that would newly disable what does not exist."""
    confirm(new_denials(of_entry(snapshots.catalog(), entry), now))


def confirm(denials: Iterable[Unresolved]) -> None:
    """Raise ConfirmationRequired if there are any."""
    if problems := [as_problem(entry) for entry in denials]:
        listed = [{"path": problem.path, "message": problem.message} for problem in problems]
        raise errors.ConfirmationRequired([str(problem) for problem in problems], {"unresolved": listed})
