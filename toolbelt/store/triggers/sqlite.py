"""Triggers of SQLite: one for each row.

Everything is an upsert: a missing revision, as after a test's flush, is created by the next write.
"""

# Statements are built from the names of this project's own tables, which need no quotes.
# ruff: noqa: S608

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from toolbelt.store.triggers import tables as families

_STAMP = "lower(hex(randomblob(16)))"
_ROWS = {"insert": ("NEW",), "update": ("OLD", "NEW"), "delete": ("OLD",)}


def statements(tables: families.Tables) -> dict[str, str]:
    """Return the statement that creates each trigger, by its name."""
    statements = {}
    for event, rows in _ROWS.items():
        for table in tables.catalog:
            name = f"{table}_moves_revision_on_{event}"
            statements[name] = _trigger(name, f"{event.upper()} ON {table}", _move_catalog(tables))
        for table, column in tables.of_agents.items():
            name = f"{table}_moves_revision_on_{event}"
            owners = ", ".join(f"{row}.{column}" for row in rows)
            statements[name] = _trigger(name, f"{event.upper()} ON {table}", *_move_agents(tables, owners))
    # Sub-apps name their agents by key, so the key is part of the catalog.
    name = f"{tables.agent}_moves_catalog_on_rename"
    event = f"UPDATE OF key ON {tables.agent} FOR EACH ROW WHEN OLD.key IS NOT NEW.key"
    statements[name] = _trigger(name, event, _move_catalog(tables))
    name = f"{tables.audit}_stays_as_it_is"
    refusal = "SELECT RAISE(ABORT, 'The audit log is only ever added to.');"
    statements[name] = f"CREATE TRIGGER {name} BEFORE UPDATE ON {tables.audit} BEGIN {refusal} END"
    return statements


def present(connection: BaseDatabaseWrapper, tables: families.Tables) -> set[str]:
    """Return the names of this project's existing triggers; there may be others."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'")
        return {name for name, table in cursor.fetchall() if table in tables.watched and table in name}


def prepare(tables: families.Tables) -> list[str]:
    """Return no statements: nothing has to be prepared."""
    return []


def drop(tables: families.Tables, names: set[str]) -> list[str]:
    """Return the statements that drop these triggers."""
    return [f"DROP TRIGGER IF EXISTS {name}" for name in sorted(names)]


def move_everything(tables: families.Tables) -> list[str]:
    """Return the statements after which the catalog and every agent count as changed."""
    agent_ids = f"SELECT id FROM {tables.agent} UNION SELECT agent_id FROM {tables.agent_revision}"
    return [_move_catalog(tables), *_stamp_agents(tables, agent_ids)]


def _trigger(name: str, event: str, *statements: str) -> str:
    return f"CREATE TRIGGER {name} AFTER {event} BEGIN {' '.join(statements)} END"


def _move_catalog(tables: families.Tables) -> str:
    return (
        f"INSERT INTO {tables.revision} (id, number, catalog_number, catalog_stamp)"
        f" VALUES (1, 1, 1, {_STAMP}) ON CONFLICT (id) DO UPDATE SET"
        " number = number + 1, catalog_number = number + 1, catalog_stamp = excluded.catalog_stamp;"
    )


def _move_agents(tables: families.Tables, owners: str) -> list[str]:
    move = (
        f"INSERT INTO {tables.revision} (id, number, catalog_number, catalog_stamp)"
        f" VALUES (1, 1, 0, {_STAMP}) ON CONFLICT (id) DO UPDATE SET number = number + 1;"
    )
    return [move, *_stamp_agents(tables, owners)]


def _stamp_agents(tables: families.Tables, owners: str) -> list[str]:
    """Return the statements that delete the revisions of missing agents and stamp existing ones."""
    return [
        f"DELETE FROM {tables.agent_revision} WHERE agent_id IN ({owners})"
        f" AND agent_id NOT IN (SELECT id FROM {tables.agent});",
        f"INSERT INTO {tables.agent_revision} (agent_id, number, stamp)"
        f" SELECT a.id, r.number, {_STAMP} FROM {tables.agent} AS a, {tables.revision} AS r"
        f" WHERE r.id = 1 AND a.id IN ({owners})"
        " ON CONFLICT (agent_id) DO UPDATE SET number = excluded.number, stamp = excluded.stamp;",
    ]
