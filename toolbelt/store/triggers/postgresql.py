"""Triggers of PostgreSQL: one for each statement, and a function for each family of tables.

A statement that affects no row moves nothing: its transition tables tell which rows it affected. Those are limited to
one event, so every table has a trigger for each event, and one for TRUNCATE, which has no transition tables.
"""

# Statements are built from the names of this project's own tables, which need no quotes.
# ruff: noqa: S608

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from toolbelt.store.triggers import tables as families

_STAMP = "gen_random_uuid()::text"
_EVENTS = {
    "insert": "REFERENCING NEW TABLE AS new_rows",
    "update": "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "delete": "REFERENCING OLD TABLE AS old_rows",
    "truncate": "",
}
_CATALOG, _AGENT, _AUDIT = "toolbelt_catalog_moved", "toolbelt_agent_moved", "toolbelt_audit_stays"
_TOLD = "toolbelt_revision_told"
# The channel that is notified when a transaction that moved the revision is committed.
CHANNEL = "toolbelt_revision"


def statements(tables: families.Tables) -> dict[str, str]:
    """Return the statement that creates each trigger, by its name."""
    statements = {}
    functions = dict.fromkeys(tables.catalog, _CATALOG)
    functions |= {table: f"{_AGENT}_by_{column}" for table, column in tables.of_agents.items()}
    for table, function in functions.items():
        for event, rows in _EVENTS.items():
            name = f"{table}_moves_revision_on_{event}"
            statements[name] = (
                f"CREATE TRIGGER {name} AFTER {event.upper()} ON {table} {rows}"
                f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
            )
    name = f"{tables.audit}_stays_as_it_is"
    statements[name] = (
        f"CREATE TRIGGER {name} BEFORE UPDATE ON {tables.audit} FOR EACH ROW EXECUTE FUNCTION {_AUDIT}()"
    )
    name = f"{tables.revision}_tells_that_it_moved"
    statements[name] = (
        f"CREATE TRIGGER {name} AFTER INSERT OR UPDATE OR DELETE ON {tables.revision}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {_TOLD}()"
    )
    return statements


def present(connection: BaseDatabaseWrapper, tables: families.Tables) -> set[str]:
    """Return the names of existing triggers on these tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
            " WHERE NOT t.tgisinternal AND c.relname = ANY(%s) AND pg_table_is_visible(c.oid)",
            [sorted(tables.watched)],
        )
        return {name for (name,) in cursor.fetchall()}


def prepare(tables: families.Tables) -> list[str]:
    """Return the statements that create the triggers' functions."""
    return [
        _function(_CATALOG, _catalog_moved(tables)),
        *(
            _function(f"{_AGENT}_by_{column}", _agents_moved(tables, column))
            for column in sorted(set(tables.of_agents.values()))
        ),
        _function(_AUDIT, "BEGIN RAISE EXCEPTION 'The audit log is only ever added to.'; END"),
        _function(_TOLD, f"BEGIN PERFORM pg_notify('{CHANNEL}', ''); RETURN NULL; END"),
    ]


def drop(tables: families.Tables, names: set[str]) -> list[str]:
    """Return the statements that drop the functions and all triggers."""
    functions = [
        _CATALOG,
        _AUDIT,
        _TOLD,
        *(f"{_AGENT}_by_{column}" for column in set(tables.of_agents.values())),
    ]
    return [f"DROP FUNCTION IF EXISTS {function}() CASCADE" for function in functions]


def move_everything(tables: families.Tables) -> list[str]:
    """Return the statements after which the catalog and every agent count as changed."""
    return [
        _move_catalog(tables),
        f"DELETE FROM {tables.agent_revision} WHERE agent_id NOT IN (SELECT id FROM {tables.agent})",
        _stamp_agents(tables, "true"),
    ]


def _function(name: str, body: str) -> str:
    return f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$"


def _catalog_moved(tables: families.Tables) -> str:
    return f"""
    DECLARE touched boolean := true;
    BEGIN
        IF TG_OP = 'DELETE' THEN
            touched := EXISTS (SELECT FROM old_rows);
        ELSIF TG_OP <> 'TRUNCATE' THEN
            touched := EXISTS (SELECT FROM new_rows);
        END IF;
        IF touched THEN
            {_move_catalog(tables)};
        END IF;
        RETURN NULL;
    END"""


def _agents_moved(tables: families.Tables, column: str) -> str:
    # Sub-apps name their agents by key, so the key is part of the catalog.
    renamed = f"""
            IF EXISTS (SELECT FROM old_rows o JOIN new_rows n USING (id) WHERE o.key <> n.key) THEN
                {_move_catalog(tables)};
            END IF;"""
    return f"""
    DECLARE touched bigint[];
    BEGIN
        IF TG_OP = 'INSERT' THEN
            touched := ARRAY(SELECT DISTINCT {column} FROM new_rows);
        ELSIF TG_OP = 'DELETE' THEN
            touched := ARRAY(SELECT DISTINCT {column} FROM old_rows);
        ELSIF TG_OP = 'UPDATE' THEN
            touched := ARRAY(SELECT {column} FROM old_rows UNION SELECT {column} FROM new_rows);
            {renamed if column == "id" else ""}
        ELSE
            touched := ARRAY(SELECT agent_id FROM {tables.agent_revision});
        END IF;
        IF cardinality(touched) > 0 THEN
            INSERT INTO {tables.revision} AS r (id, number, catalog_number, catalog_stamp)
                VALUES (1, 1, 0, {_STAMP}) ON CONFLICT (id) DO UPDATE SET number = r.number + 1;
            DELETE FROM {tables.agent_revision} v WHERE v.agent_id = ANY(touched)
                AND NOT EXISTS (SELECT FROM {tables.agent} a WHERE a.id = v.agent_id);
            {_stamp_agents(tables, "a.id = ANY(touched)")};
        END IF;
        RETURN NULL;
    END"""


def _move_catalog(tables: families.Tables) -> str:
    return (
        f"INSERT INTO {tables.revision} AS r (id, number, catalog_number, catalog_stamp)"
        f" VALUES (1, 1, 1, {_STAMP}) ON CONFLICT (id) DO UPDATE SET"
        " number = r.number + 1, catalog_number = r.number + 1, catalog_stamp = excluded.catalog_stamp"
    )


def _stamp_agents(tables: families.Tables, condition: str) -> str:
    """Return the statement that stamps existing agents: an agent may be deleted before its other rows."""
    return (
        f"INSERT INTO {tables.agent_revision} (agent_id, number, stamp)"
        f" SELECT a.id, r.number, {_STAMP} FROM {tables.agent} AS a, {tables.revision} AS r"
        f" WHERE r.id = 1 AND {condition}"
        " ON CONFLICT (agent_id) DO UPDATE SET number = excluded.number, stamp = excluded.stamp"
    )
