"""Every write of configuration moves the revision, by any means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from tests import factories
from tests.store import stamped
from tests.store.conftest import Process
from toolbelt import models
from toolbelt.core import sessions as values
from toolbelt.store import audit, sessions, snapshots

CATALOG: dict[str, Callable[[], object]] = {
    "a save": lambda: stamped.renamed(models.Tool.objects.get(key="run")).save(),
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
        [stamped.renamed(models.Tool.objects.get(key="run"))], ["description"]
    ),
    "an update": lambda: models.Tool.objects.filter(key="run").update(description="x"),
    "a deletion of many": lambda: models.Member.objects.all().delete(),
    "an insertion in SQL": lambda: stamped.sql("INSERT INTO toolbelt_category (name) VALUES ('raw')"),
    "an update in SQL": lambda: stamped.sql("UPDATE toolbelt_tool SET description = 'x'"),
    "a deletion in SQL": lambda: stamped.sql("DELETE FROM toolbelt_member"),
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
    "an update in SQL": lambda: stamped.sql("UPDATE toolbelt_agent SET title = 'x' WHERE key = 'ada'"),
    "a switch that is flipped": lambda: models.ToolkitSwitch.objects.update(on=False),
    "a switch that is cleared": lambda: models.ToolkitSwitch.objects.all().delete(),
    "a switch that is flipped in SQL": lambda: stamped.sql(
        'UPDATE toolbelt_toolkitswitch SET "on" = NOT "on"'
    ),
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
    before = stamped.state()

    write()

    after = stamped.state()
    assert after.catalog_stamp not in ("", before.catalog_stamp)
    assert after.catalog_number > before.number


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="no other database has INSERT OR REPLACE")
def test_a_row_that_is_replaced_in_sql_moves_the_agent_that_loses_it() -> None:
    factories.everything()
    switch, bea = models.ToolkitSwitch.objects.get(), factories.agent("bea")
    before = stamped.state()

    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT OR REPLACE INTO toolbelt_toolkitswitch (id, agent_id, toolkit_id, "on") VALUES (%s, %s, %s, 1)',
            [switch.pk, bea.pk, switch.toolkit_id],
        )

    after = stamped.state()
    assert switch.agent.key == "ada"
    assert after.agents["ada"] != before.agents["ada"]
    assert after.agents["bea"] != before.agents["bea"]


@pytest.mark.django_db
@pytest.mark.parametrize("write", AGENT.values(), ids=AGENT)
def test_its_agent_alone_moves_with(write: Callable[[], object]) -> None:
    factories.everything()
    factories.agent("bea")
    before = stamped.state()

    write()

    after = stamped.state()
    assert after.agents["ada"] not in ("", before.agents["ada"])
    assert after.agents["bea"] == before.agents["bea"]
    assert after.number > before.number
    assert (after.catalog_number, after.catalog_stamp) == (before.catalog_number, before.catalog_stamp)


@pytest.mark.django_db
def test_a_row_that_changes_hands_moves_both_agents() -> None:
    factories.everything()
    bea = factories.agent("bea")
    before = stamped.state()

    models.ToolkitSwitch.objects.update(agent=bea)

    after = stamped.state()
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
        stamped.sql(f"DELETE FROM toolbelt_{table}")  # noqa: S608 (names in this test)

    assert not models.AgentRevision.objects.exists()


@pytest.mark.django_db
def test_sessions_and_the_log_move_nothing() -> None:
    ada = factories.everything()
    before = stamped.state()

    sessions.change(ada.pk, "s", lambda held: (None, values.with_change(held, "toolkit", "dev", True, None)))
    models.AgentSession.objects.all().delete()
    audit.record(
        actor="o", via="api", action="x", subject_kind="agent", subject_key="ada", before=None, after=None
    )

    assert stamped.state() == before


@pytest.mark.django_db
def test_a_write_that_touches_no_row_moves_nothing() -> None:
    factories.everything()
    before = stamped.state()

    models.Tool.objects.filter(key="nobody").update(description="x")
    models.ToolkitSwitch.objects.filter(on=False).delete()

    assert stamped.state() == before


@pytest.mark.django_db
def test_a_number_that_was_rolled_back_comes_again_with_another_stamp() -> None:
    factories.everything()
    seen = []
    for description in ("one", "other"):
        with transaction.atomic():
            models.Tool.objects.update(description=description)
            seen.append(stamped.state())
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


WRITES: dict[str, Callable[[], object]] = {
    "a save": lambda: stamped.renamed(models.Tool.objects.get(key="run")).save(),
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
