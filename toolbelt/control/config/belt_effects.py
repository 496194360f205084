"""The effects of an import: the tools that agents gain or lose, and what of that must be confirmed.

An import can affect every agent, including those that it does not name: through a loadout, a toolkit, or a tool that is
retired. All are therefore resolved as they are and as they would be, outside any session. Nothing here writes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import guards, writing
from toolbelt.control.config import belts
from toolbelt.core import agents as values
from toolbelt.core import catalog, effects, errors, schema
from toolbelt.core.rules import budgets
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots, token_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """The effect on one agent. ``reasons`` are those for which any change like it must be confirmed."""

    agent: str
    is_new: bool
    effect: effects.Effect
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The effects of an import. ``revision`` is that of the configuration it was assessed with; ``digest`` identifies
    the belt.
    """

    imported: belts.Imported
    consequences: tuple[Consequence, ...]
    revision: int
    digest: str


def assess(write: writing.Write, document: Mapping[str, Any]) -> Assessment:
    """Return the effects of importing this belt now; raise as :func:`toolbelt.control.config.belts.import_` does."""
    revision = belts.revision()
    stored = snapshots.catalog()
    imported, belt = belts.evaluate(write, document, _token_counter(stored))
    before = {agent.key: agent for agent in agent_rows.load_all()}
    assessed = (
        _consequence(stored, before.get(key), belt.catalog, proposed) for key, proposed in belt.agents.items()
    )
    return Assessment(
        imported=imported,
        consequences=tuple(item for item in assessed if not item.effect.is_nothing or item.reasons),
        revision=revision,
        digest=digest(document),
    )


def apply(
    write: writing.Write, document: Mapping[str, Any], *, revision: int, seen_digest: str
) -> belts.Imported:
    """Import the belt that was assessed: the one with this digest, with the configuration of ``revision``.

    Raise Stale if the belt or the configuration has changed, and the errors of the import. The assessment that was
    shown counts as confirmed.
    """
    if not seen_digest or digest(document) != seen_digest:
        raise errors.Stale("The belt", "the one that was checked", "another one")
    return belts.import_(write.replace(confirm=True), document, was=revision)


def digest(document: Mapping[str, Any]) -> str:
    """Return the digest of a belt: equal for equal entries, however they are written. Empty for a document that JSON
    cannot express (with a YAML date, for example), for which no effects were shown.
    """
    try:
        return hashlib.sha256(schema.canonical(document).encode()).hexdigest()
    except (TypeError, ValueError):
        return ""


def _consequence(
    stored: catalog.Catalog, agent: values.Agent | None, then: catalog.Catalog, proposed: values.Agent
) -> Consequence:
    old = budgets.resolve(snapshots.of(stored, agent)) if agent is not None else None
    new = budgets.resolve(snapshots.of(then, proposed))
    before = old.active if old is not None else {}
    effect = effects.Effect(
        tools_before=old.spent.tools if old is not None else 0,
        tools_after=new.spent.tools,
        tokens_before=old.spent.tokens if old is not None else 0,
        tokens_after=new.spent.tokens,
        added=tuple(key for key in new.active if key not in before),
        removed=tuple(key for key in before if key not in new.active),
        policy=(),
    )
    reasons: list[str] = []
    if agent != proposed or not effect.is_nothing:
        now = agent or values.Agent(key=proposed.key)
        reasons = guards.confirmation_reasons(then, now, proposed, None, effect)
    return Consequence(agent=proposed.key, is_new=agent is None, effect=effect, reasons=tuple(reasons))


def _token_counter(stored: catalog.Catalog) -> Callable[[str], int]:
    """Return a counter of tokens that reuses the stored counts."""
    stored_counts = {
        catalog.model_json(
            tool.key, tool.description, schema.mapping(tool.input_schema, schema.EMPTY)
        ): tool.tokens
        for tool in stored.tools.values()
    }
    count = functools.cache(token_counts.count)
    return lambda text: stored_counts.get(text) or count(text)
