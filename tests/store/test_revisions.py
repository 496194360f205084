"""Does every write of configuration move the revision, whoever writes and however?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from tests import factories
from tests.store.conftest import Process
from toolbelt import models
from toolbelt.core import sessions as values
from toolbelt.store import audit, revisions, sessions, snapshots, triggers


class State(NamedTuple):
    """Where the revision stands."""

    number: int
    catalog_number: int
    catalog_stamp: str
    agents: dict[str, str]


def state() -> State:
    stored = models.Revision.objects.get()
    stamps = dict(models.AgentRevision.objects.values_list("agent_id", "stamp"))
    named = dict(models.Agent.objects.values_list("id", "key"))
    return State(
        stored.number,
        stored.catalog_number,
        stored.catalog_stamp,
        {named[number]: stamp for number, stamp in stamps.items()},
    )


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def renamed(row: models.Tool) -> models.Tool:
    row.description = "Another one."
    return row


CATALOG: dict[str, Callable[[], object]] = {
    "a save": lambda: renamed(models.Tool.objects.get(key="run")).save(),
    "a creation": lambda: factories.tool("new"),
    "a deletion": lambda: models.SubApp.objects.get().delete(),
    "a bulk creation": lambda: models.Tool.objects.bulk_create([models.Tool(key="a"), models.Tool(key="b")]),
    "a bulk creation that passes over what is there": lambda: models.Tool.objects.bulk_create(
        [models.Tool(key="a"), models.Tool(key="run")], ignore_conflicts=True
    ),
    "a bulk creation that updates what is there": lambda: models.Tool.objects.bulk_create(
        [models.Tool(key="run", description="x")],
        update_conflicts=True,
        unique_fields=["key"],
        update_fields=["description"],
    ),
    "a bulk update": lambda: models.Tool.objects.bulk_update(
        [renamed(models.Tool.objects.get(key="run"))], ["description"]
    ),
    "an update": lambda: models.Tool.objects.filter(key="run").update(description="x"),
    "a deletion of many": lambda: models.Member.objects.all().delete(),
    "an insertion in SQL": lambda: sql("INSERT INTO toolbelt_category (name) VALUES ('raw')"),
    "an update in SQL": lambda: sql("UPDATE toolbelt_tool SET description = 'x'"),
    "a deletion in SQL": lambda: sql("DELETE FROM toolbelt_member"),
    "a category": lambda: models.Category.objects.update(name="x"),
    "a plugin": lambda: models.Plugin.objects.update(blocked=True),
    "a toolkit": lambda: models.Toolkit.objects.update(policy="x"),
    "a member": lambda: models.Member.objects.update(position=9),
    "a loadout": lambda: models.Loadout.objects.update(parent=""),
    "a sub-app": lambda: models.SubApp.objects.update(title="x"),
    "a sub-app's tool": lambda: models.SubAppTool.objects.all().delete(),
    "a sub-app's agent": lambda: models.SubAppAgent.objects.all().delete(),
    "an agent's new name, by which sub-apps know it": lambda: models.Agent.objects.filter(key="ada").update(
        key="lovelace"
    ),
}
AGENT: dict[str, Callable[[], object]] = {
    "a save": lambda: models.Agent.objects.get(key="ada").save(),
    "an update": lambda: models.Agent.objects.filter(key="ada").update(title="x"),
    "a bulk update": lambda: models.Agent.objects.bulk_update(
        [models.Agent.objects.get(key="ada")], ["title"]
    ),
    "an update in SQL": lambda: sql("UPDATE toolbelt_agent SET title = 'x' WHERE key = 'ada'"),
    "a switch that is flipped": lambda: models.ToolkitSwitch.objects.update(on=False),
    "a switch that is cleared": lambda: models.ToolkitSwitch.objects.all().delete(),
    "a switch that is flipped in SQL": lambda: sql('UPDATE toolbelt_toolkitswitch SET "on" = NOT "on"'),
    "an override": lambda: models.ToolOverride.objects.update(on=True),
    "an override that is new": lambda: models.ToolOverride.objects.bulk_create(
        [
            models.ToolOverride(
                agent=models.Agent.objects.get(key="ada"), tool=models.Tool.objects.get(key="run"), on=True
            )
        ]
    ),
    "an always-on tool": lambda: models.AgentTool.objects.update(options=None),
    "an allowed toolkit": lambda: models.AgentToolkit.objects.update(initial=False),
}


@pytest.mark.django_db
@pytest.mark.parametrize("write", CATALOG.values(), ids=CATALOG)
def test_the_catalog_moves_with(write: Callable[[], object]) -> None:
    factories.everything()
    before = state()

    write()

    after = state()
    assert after.catalog_stamp not in ("", before.catalog_stamp)
    assert after.catalog_number > before.number


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="no other database has INSERT OR REPLACE")
def test_a_row_that_is_replaced_in_sql_moves_the_agent_that_loses_it() -> None:
    factories.everything()
    switch, bea = models.ToolkitSwitch.objects.get(), factories.agent("bea")
    before = state()

    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT OR REPLACE INTO toolbelt_toolkitswitch (id, agent_id, toolkit_id, "on") VALUES (%s, %s, %s, 1)',
            [switch.pk, bea.pk, switch.toolkit_id],
        )

    after = state()
    assert switch.agent.key == "ada"
    assert after.agents["ada"] != before.agents["ada"]
    assert after.agents["bea"] != before.agents["bea"]


@pytest.mark.django_db
@pytest.mark.parametrize("write", AGENT.values(), ids=AGENT)
def test_its_agent_alone_moves_with(write: Callable[[], object]) -> None:
    factories.everything()
    factories.agent("bea")
    before = state()

    write()

    after = state()
    assert after.agents["ada"] not in ("", before.agents["ada"])
    assert after.agents["bea"] == before.agents["bea"]
    assert after.number > before.number
    assert (after.catalog_number, after.catalog_stamp) == (before.catalog_number, before.catalog_stamp)


@pytest.mark.django_db
def test_a_row_that_changes_hands_moves_both_agents() -> None:
    factories.everything()
    bea = factories.agent("bea")
    before = state()

    models.ToolkitSwitch.objects.update(agent=bea)

    after = state()
    assert all(after.agents[key] != before.agents[key] for key in ("ada", "bea"))


@pytest.mark.django_db
def test_an_agent_that_is_deleted_is_forgotten() -> None:
    factories.everything().delete()

    assert not models.AgentRevision.objects.exists()


@pytest.mark.django_db
def test_deleting_in_sql_in_the_wrong_order_leaves_nothing_behind() -> None:
    factories.everything()
    models.SubAppAgent.objects.all().delete()

    for table in ("agent", "agenttool", "agenttoolkit", "toolkitswitch", "tooloverride"):
        sql(f"DELETE FROM toolbelt_{table}")  # noqa: S608 (names in this test)

    assert not models.AgentRevision.objects.exists()


@pytest.mark.django_db
def test_sessions_and_the_log_move_nothing() -> None:
    ada = factories.everything()
    before = state()

    sessions.change(ada.pk, "s", lambda held: (None, values.changed(held, "toolkit", "dev", True, None)))
    models.AgentSession.objects.all().delete()
    audit.record(
        actor="o", via="api", action="x", subject_kind="agent", subject_key="ada", before=None, after=None
    )

    assert state() == before


@pytest.mark.django_db
def test_a_write_that_touches_no_row_moves_nothing() -> None:
    factories.everything()
    before = state()

    models.Tool.objects.filter(key="nobody").update(description="x")
    models.ToolkitSwitch.objects.filter(on=False).delete()

    assert state() == before


@pytest.mark.django_db
def test_a_number_that_was_rolled_back_comes_again_with_another_stamp() -> None:
    factories.everything()
    seen = []
    for description in ("one", "other"):
        with transaction.atomic():
            models.Tool.objects.update(description=description)
            seen.append(state())
            transaction.set_rollback(True)

    assert seen[0].number == seen[1].number
    assert seen[0].catalog_stamp != seen[1].catalog_stamp


@pytest.mark.django_db
def test_what_was_written_and_taken_back_is_never_answered() -> None:
    factories.everything()

    for description in ("one", "other"):
        with transaction.atomic():
            models.Tool.objects.filter(key="run").update(description=description)
            models.ToolkitSwitch.objects.update(on=False)
            found = snapshots.find("ada", None)
            assert found.catalog.tools["run"].description == description
            assert found.agent.switches == {"dev": False}
            transaction.set_rollback(True)

        found = snapshots.find("ada", None)
        assert found.catalog.tools["run"].description == ""
        assert found.agent.switches == {"dev": True}


@pytest.mark.django_db
def test_a_lost_revision_comes_back_with_the_next_write() -> None:
    factories.everything()
    snapshots.find("ada", None)
    models.Revision.objects.all().delete()
    models.AgentRevision.objects.all().delete()
    assert snapshots.find("ada", None).number == 0

    models.ToolkitSwitch.objects.update(on=False)
    assert snapshots.find("ada", None).agent.switches == {"dev": False}
    models.Tool.objects.update(description="x")

    found = snapshots.find("ada", None)
    assert found.catalog.tools["run"].description == "x"
    assert found.catalog_stamp
    assert found.agent_stamp


@pytest.mark.django_db
def test_a_fixture_cannot_bring_back_the_stamp_of_another_state(tmp_path: Path) -> None:
    factories.everything()
    fixture = tmp_path / "old.json"
    call_command("dumpdata", "toolbelt.Revision", "toolbelt.AgentRevision", output=str(fixture))
    old = state()
    models.Tool.objects.update(description="x")
    before = state()

    call_command("loaddata", str(fixture), verbosity=0)

    after = state()
    assert after.number > before.number
    assert after.catalog_stamp not in (old.catalog_stamp, before.catalog_stamp)
    assert after.agents["ada"] not in (old.agents["ada"], before.agents["ada"])


@pytest.mark.django_db
def test_the_lock_needs_a_transaction_and_a_row_is_made_for_it() -> None:
    models.Revision.objects.all().delete()

    revisions.lock()
    revisions.lock()

    assert models.Revision.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction_there_is_no_lock() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        revisions.lock()


@pytest.mark.django_db
def test_triggers_that_are_missing_are_reported_and_put_back_and_everything_counts_as_changed() -> None:
    factories.everything()
    before = state()
    assert revisions.check(None, ["default"]) == []
    triggers.remove(connection)
    triggers.remove(connection)
    models.Tool.objects.update(description="unseen")
    assert state() == before

    (warning,) = revisions.check(None, ["default"])
    assert warning.id == "toolbelt.W002"
    assert "migrate" in str(warning.hint)
    assert triggers.install(connection)

    assert revisions.check(None, ["default"]) == []
    assert state().catalog_stamp != before.catalog_stamp
    assert state().agents["ada"] != before.agents["ada"]
    assert not triggers.install(connection)


@pytest.mark.django_db(transaction=True)
def test_migrating_puts_missing_triggers_back() -> None:
    triggers.remove(connection)

    call_command("migrate", verbosity=0)

    assert triggers.missing(connection) == ()


@pytest.mark.django_db(transaction=True)
def test_migrating_back_and_forth_leaves_all_triggers_in_place() -> None:
    call_command("migrate", "toolbelt", "zero", verbosity=0)
    assert triggers.missing(connection) == ()

    call_command("migrate", "toolbelt", verbosity=0)

    assert triggers.missing(connection) == ()
    factories.everything()
    assert state().catalog_stamp


@pytest.mark.django_db(transaction=True)
def test_flushing_the_database_leaves_it_watched() -> None:
    factories.everything()
    snapshots.find("ada", None)

    call_command("flush", interactive=False, verbosity=0)

    factories.agent("ada")
    assert snapshots.find("ada", None).catalog.tools == {}


WRITES: dict[str, Callable[[], object]] = {
    "a save": lambda: renamed(models.Tool.objects.get(key="run")).save(),
    "a bulk creation": CATALOG["a bulk creation"],
    "a bulk update": CATALOG["a bulk update"],
    "an update": CATALOG["an update"],
    "SQL": CATALOG["an update in SQL"],
    "a new name of a tool that a switch's toolkit has": lambda: models.Tool.objects.filter(key="run").update(
        key="execute"
    ),
    "a flip": AGENT["a switch that is flipped"],
    "a clearing": AGENT["a switch that is cleared"],
    "a flip in SQL": AGENT["a switch that is flipped in SQL"],
    "a new name of a toolkit": lambda: models.Toolkit.objects.update(key="tools"),
    "an edit of the agent": AGENT["an update"],
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_the_next_answer_of_another_process_tells_of(
    another_process: Process, write: Callable[[], object]
) -> None:
    factories.everything()
    before = another_process.ask("ada")
    assert another_process.ask("ada") == before

    write()

    assert another_process.ask("ada") != before


@pytest.mark.django_db(transaction=True)
def test_the_next_answer_of_another_process_tells_of_a_fixture(
    another_process: Process, tmp_path: Path
) -> None:
    factories.everything()
    fixture = tmp_path / "flip.json"
    fields = {"agent": ["ada"], "toolkit": ["dev"], "on": False}
    fixture.write_text(json.dumps([{"model": "toolbelt.toolkitswitch", "fields": fields}]))
    assert another_process.ask("ada")["switches"] == {"dev": True}

    call_command("loaddata", str(fixture), verbosity=0)

    assert another_process.ask("ada")["switches"] == {"dev": False}
