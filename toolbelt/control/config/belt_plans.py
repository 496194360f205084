"""Plans: what applying a belt would do, and applying it: the configuration as code, from a file that is kept elsewhere.

A plan can be limited to some sections, and can archive the agents that the belt no longer has. Nothing is deleted:
other entries that the belt does not have stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.agents import agents
from toolbelt.control.config import belt_effects, belts, drift
from toolbelt.core import errors
from toolbelt.store import entries as rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The effects of applying a belt: those of its import, and the agents that would be archived."""

    assessment: belt_effects.Assessment
    archived: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Return whether the configuration is as the belt says."""
        imported = self.assessment.imported
        return not (imported.differences or imported.ordered or self.archived)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return everything that must be confirmed."""
        each = [
            reason if reason.startswith(f"{item.agent} ") else f"{item.agent}: {reason}"
            for item in self.assessment.consequences
            for reason in item.reasons
        ]
        each += [denial.message for denial in self.assessment.imported.to_confirm]
        return (*each, *(f"{agent} is archived: the belt does not have it." for agent in self.archived))


def plan(
    write: writing.Write, document: Mapping[str, Any], *, only: Collection[str] = (), prune: bool = False
) -> Plan:
    """Return what applying the belt would do now; ``only`` these sections of it, and with ``prune`` archiving agents.

    Raise as an import does, and errors.Invalid for a section that does not exist, or for pruning by a belt without the
    section of agents, which would archive all of them.
    """
    document = limited(document, only)
    archived = _absent(document) if prune else ()
    return Plan(assessment=belt_effects.assess(write, document), archived=archived)


def apply(
    write: writing.Write,
    document: Mapping[str, Any],
    *,
    only: Collection[str] = (),
    prune: bool = False,
    name: str = drift.STANDARD_INPUT,
) -> tuple[Plan, belts.Imported]:
    """Do what :func:`plan` returns, in one transaction and one batch; return the plan, and what was imported.

    ``name`` is that of the file. It is recorded as the belt that was applied last, also if nothing changes.

    Raise as :func:`plan`; errors.ConfirmationRequired with everything to confirm, unless the write confirms it; or
    errors.Stale if the configuration has changed since it was planned.
    """
    planned = plan(write, document, only=only, prune=prune)
    if planned.reasons and not write.confirm:
        raise errors.ConfirmationRequired(planned.reasons, {})
    write = write.replace(confirm=True).in_batch()
    with writing.begin():
        imported = belts.import_(write, limited(document, only), was=planned.assessment.revision)
        entry = imported.entry
        for agent in planned.archived:
            entry = agents.archive(write, agent, True).entry or entry
        digest = planned.assessment.digest
        drift.record(write, limited(document, only), digest, name=name, prunes=prune)
    return planned, dataclasses.replace(imported, entry=entry)


def limited(document: Mapping[str, Any], only: Collection[str]) -> Mapping[str, Any]:
    """Return the belt with these sections only; with all, if none is named. Raise errors.Invalid."""
    problems = [
        errors.Problem(
            path=name, message=f"A belt has no such section: choose of {', '.join(belts.SECTIONS)}."
        )
        for name in only
        if name not in belts.SECTIONS
    ]
    if problems:
        raise errors.Invalid(problems)
    return {name: value for name, value in document.items() if not only or name in only}


def _absent(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the agents that are not archived and that the belt does not have."""
    written = document.get("agents")
    if not isinstance(written, list):
        message = (
            "Pruning archives the agents that the belt does not have: it needs the section, which can be []."
        )
        raise errors.Invalid([errors.Problem(path="agents", message=message)])
    names = {entry.get("key") for entry in written if isinstance(entry, Mapping)}
    stored = rows.export().get("agents", ())
    return tuple(entry["key"] for entry in stored if entry["key"] not in names and not entry.get("archived"))
