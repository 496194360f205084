"""Who gains tools by an import, who loses some, and what of that deserves a second look?

An import can reach every agent, also those that it does not name: by a loadout, a toolkit, a tool that is retired. So
all are worked out as they are and as they would be, outside any session. Nothing here writes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt import conf
from toolbelt.control import actors, belts, guards
from toolbelt.core import agents as values
from toolbelt.core import budgets, catalog, effects, errors, resolution, schema
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What becomes of one agent. ``reasons`` are those for which any change like it asks to be confirmed."""

    agent: str
    is_new: bool
    effect: effects.Effect
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What an import would do, to what and to whom. ``revision`` is that of the configuration it was weighed beside;
    ``digest`` stands for the belt.
    """

    imported: belts.Imported
    consequences: tuple[Consequence, ...]
    revision: int
    digest: str


def weigh(actor: actors.Actor, document: Mapping[str, Any]) -> Weighed:
    """Say what importing this belt would do now. Raises as :func:`toolbelt.control.belts.import_` does."""
    revision = belts.revision()
    stored = snapshots.catalog()
    imported, belt = belts.judge(actor, document, _counting(stored))
    before = {agent.key: agent for agent in agent_rows.every()}
    weighed = (
        _consequence(stored, before.get(key), belt.catalog, wanted) for key, wanted in belt.agents.items()
    )
    return Weighed(
        imported=imported,
        consequences=tuple(one for one in weighed if not one.effect.is_nothing or one.reasons),
        revision=revision,
        digest=digest(document),
    )


def apply(
    actor: actors.Actor, document: Mapping[str, Any], *, revision: int, shown: str, reason: str = ""
) -> belts.Imported:
    """Import the belt that was weighed: the one that ``shown`` stands for, beside the configuration of ``revision``.

    Raises Stale where the belt or the configuration is another one, and what the import itself does.
    """
    if not shown or digest(document) != shown:
        raise errors.Stale("The belt", "the one that was checked", "another one")
    return belts.import_(actor, document, was=revision, reason=reason)


def digest(document: Mapping[str, Any]) -> str:
    """Give what stands for a belt: the same for the same entries, however they are written. Empty for what is none
    because it holds what JSON does not (a date of YAML's, say): nobody was shown what importing that would do.
    """
    try:
        return hashlib.sha256(schema.canonical(document).encode()).hexdigest()
    except (TypeError, ValueError):
        return ""


def _consequence(
    stored: catalog.Catalog, agent: values.Agent | None, then: catalog.Catalog, wanted: values.Agent
) -> Consequence:
    had = _resolved(stored, agent) if agent is not None else None
    has = _resolved(then, wanted)
    before = had.active if had is not None else {}
    effect = effects.Effect(
        tools_before=had.spent.tools if had is not None else 0,
        tools_after=has.spent.tools,
        tokens_before=had.spent.tokens if had is not None else 0,
        tokens_after=has.spent.tokens,
        added=tuple(key for key in has.active if key not in before),
        removed=tuple(key for key in before if key not in has.active),
        policy=(),
    )
    reasons: list[str] = []
    if agent != wanted or not effect.is_nothing:
        now = agent or values.Agent(key=wanted.key)
        reasons = guards.far_reaching(then, now, wanted, None, effect)
    return Consequence(agent=wanted.key, is_new=agent is None, effect=effect, reasons=tuple(reasons))


def _resolved(stored: catalog.Catalog, agent: values.Agent) -> budgets.Resolution:
    return budgets.resolve(resolution.Snapshot(catalog=stored, agent=agent, kind_loadouts=conf.KIND_LOADOUTS))


def _counting(stored: catalog.Catalog) -> Callable[[str], int]:
    """Give what counts tokens: what is stored was counted already."""
    known = {
        catalog.sent(tool.key, tool.description, schema.mapping(tool.input_schema, schema.EMPTY)): tool.tokens
        for tool in stored.tools.values()
    }
    count = functools.cache(tokens.count)
    return lambda text: known.get(text) or count(text)
