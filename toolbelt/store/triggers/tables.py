"""The tables whose writes move the revision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import models as orm

from toolbelt import models

CATALOG: tuple[type[orm.Model], ...] = (
    models.Category,
    models.Plugin,
    models.Tool,
    models.Toolkit,
    models.Member,
    models.Loadout,
    models.SubApp,
    models.SubAppTool,
    models.SubAppAgent,
    models.Purge,
    models.GateRule,
)
# With the column of the agent to which a row belongs.
OF_AGENTS: Mapping[type[orm.Model], str] = {
    models.Agent: "id",
    models.AgentTool: "agent_id",
    models.AgentToolkit: "agent_id",
    models.ToolkitSwitch: "agent_id",
    models.ToolOverride: "agent_id",
    models.Rollout: "agent_id",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of both families, and the tables that they write to."""

    catalog: tuple[str, ...]
    of_agents: Mapping[str, str]
    agent: str
    revision: str
    agent_revision: str
    audit: str

    @property
    def watched(self) -> frozenset[str]:
        """Return the tables that have triggers."""
        return frozenset((*self.catalog, *self.of_agents, self.audit, self.revision))


def all_tables() -> Tables:
    """Return all tables, whether they exist or not."""
    return Tables(
        catalog=tuple(_table(model) for model in CATALOG),
        of_agents={_table(model): column for model, column in OF_AGENTS.items()},
        agent=_table(models.Agent),
        revision=_table(models.Revision),
        agent_revision=_table(models.AgentRevision),
        audit=_table(models.AuditEntry),
    )


def existing(table_names: frozenset[str]) -> Tables | None:
    """Return the tables that exist: during migrations, not all do. None if those that are required are missing."""
    everything = all_tables()
    if (
        not {
            everything.agent,
            everything.revision,
            everything.agent_revision,
            everything.audit,
        }
        <= table_names
    ):
        return None
    return Tables(
        catalog=tuple(table for table in everything.catalog if table in table_names),
        of_agents={table: column for table, column in everything.of_agents.items() if table in table_names},
        agent=everything.agent,
        revision=everything.revision,
        agent_revision=everything.agent_revision,
        audit=everything.audit,
    )


def _table(model: type[orm.Model]) -> str:
    return model._meta.db_table
