"""Tests that every write of configuration, by any means, changes the revision."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from tests import factories
from tests.store import revision_helpers
from tests.store.conftest import Process
from toolbelt import models
from toolbelt.core import sessions as values
from toolbelt.store import agent_sessions, audit_writing, snapshots

CATALOG: dict[str, Callable[[], object]] = {
    "a save": lambda: revision_helpers.with_new_description(models.Tool.objects.get(key="run")).save(),
    "a creation": lambda: factories.tool("new"),
    "a deletion": lambda: models.SubApp.objects.get().delete(),
    "a bulk creation": lambda: models.Tool.objects.bulk_create([models.Tool(key="a"), models.Tool(key="b")]),
    "a bulk creation that ignores conflicts": lambda: models.Tool.objects.bulk_create(
        [models.Tool(key="a"), models.Tool(key="run")], ignore_conflicts=True
    ),
    "a bulk creation that updates conflicts": lambda: models.Tool.objects.bulk_create(
        [models.Tool(key="run", description="x")],
        update_conflicts=True,
        unique_fields=["key"],
        update_fields=["description"],
    ),
    "a bulk update": lambda: models.Tool.objects.bulk_update(
        [revision_helpers.with_new_description(models.Tool.objects.get(key="run"))], ["description"]
    ),
    "an update": lambda: models.Tool.objects.filter(key="run").update(description="x"),
    "a bulk deletion": lambda: models.Member.objects.all().delete(),
    "an insertion in SQL": lambda: revision_helpers.sql(
        "INSERT INTO toolbelt_category (name) VALUES ('raw')"
    ),
    "an update in SQL": lambda: revision_helpers.sql("UPDATE toolbelt_tool SET description = 'x'"),
    "a deletion in SQL": lambda: revision_helpers.sql("DELETE FROM toolbelt_member"),
    "a category": lambda: models.Category.objects.update(name="x"),
    "a plugin": lambda: models.Plugin.objects.update(blocked=True),
    "a toolkit": lambda: models.Toolkit.objects.update(policy="x"),
    "a member": lambda: models.Member.objects.update(position=9),
    "a loadout": lambda: models.Loadout.objects.update(parent=""),
    "a sub-app": lambda: models.SubApp.objects.update(title="x"),
    "a sub-app's tool": lambda: models.SubAppTool.objects.all().delete(),
    "a sub-app's agent": lambda: models.SubAppAgent.objects.all().delete(),
    "a renamed agent, which sub-apps refer to by key": lambda: models.Agent.objects.filter(key="ada").update(
        key="lovelace"
    ),
}


AGENT: dict[str, Callable[[], object]] = {
    "a save": lambda: models.Agent.objects.get(key="ada").save(),
    "an update": lambda: models.Agent.objects.filter(key="ada").update(title="x"),
    "a bulk update": lambda: models.Agent.objects.bulk_update(
        [models.Agent.objects.get(key="ada")], ["title"]
    ),
    "an update in SQL": lambda: revision_helpers.sql(
        "UPDATE toolbelt_agent SET title = 'x' WHERE key = 'ada'"
    ),
    "a changed switch": lambda: models.ToolkitSwitch.objects.update(on=False),
    "a cleared switch": lambda: models.ToolkitSwitch.objects.all().delete(),
    "a switch changed in SQL": lambda: revision_helpers.sql(
        'UPDATE toolbelt_toolkitswitch SET "on" = NOT "on"'
    ),
    "an override": lambda: models.ToolOverride.objects.update(on=True),
    "a new override": lambda: models.ToolOverride.objects.bulk_create(
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
def test_writing_the_catalog_changes_its_revision(write: Callable[[], object]) -> None:
    factories.everything()
    before = revision_helpers.state()

    write()

    after = revision_helpers.state()
    assert after.catalog_stamp not in ("", before.catalog_stamp)
    assert after.catalog_number > before.number


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="no other database has INSERT OR REPLACE")
def test_replacing_a_row_in_sql_changes_the_revisions_of_both_agents() -> None:
    factories.everything()
    switch, bea = models.ToolkitSwitch.objects.get(), factories.agent("bea")
    before = revision_helpers.state()

    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT OR REPLACE INTO toolbelt_toolkitswitch (id, agent_id, toolkit_id, "on") VALUES (%s, %s, %s, 1)',
            [switch.pk, bea.pk, switch.toolkit_id],
        )

    after = revision_helpers.state()
    assert switch.agent.key == "ada"
    assert after.agents["ada"] != before.agents["ada"]
    assert after.agents["bea"] != before.agents["bea"]


@pytest.mark.django_db
@pytest.mark.parametrize("write", AGENT.values(), ids=AGENT)
def test_writing_an_agent_changes_only_its_revision(write: Callable[[], object]) -> None:
    factories.everything()
    factories.agent("bea")
    before = revision_helpers.state()

    write()

    after = revision_helpers.state()
    assert after.agents["ada"] not in ("", before.agents["ada"])
    assert after.agents["bea"] == before.agents["bea"]
    assert after.number > before.number
    assert (after.catalog_number, after.catalog_stamp) == (before.catalog_number, before.catalog_stamp)


@pytest.mark.django_db
def test_moving_a_row_to_another_agent_changes_both_revisions() -> None:
    factories.everything()
    bea = factories.agent("bea")
    before = revision_helpers.state()

    models.ToolkitSwitch.objects.update(agent=bea)

    after = revision_helpers.state()
    assert all(after.agents[key] != before.agents[key] for key in ("ada", "bea"))


@pytest.mark.django_db
def test_deleting_an_agent_deletes_its_revision() -> None:
    factories.everything().delete()

    assert not models.AgentRevision.objects.exists()


@pytest.mark.django_db
def test_deleting_in_sql_in_any_order_leaves_no_agent_revisions() -> None:
    factories.everything()
    models.SubAppAgent.objects.all().delete()

    for table in ("agent", "agenttool", "agenttoolkit", "toolkitswitch", "tooloverride"):
        revision_helpers.sql(f"DELETE FROM toolbelt_{table}")  # noqa: S608 (names in this test)

    assert not models.AgentRevision.objects.exists()


@pytest.mark.django_db
def test_sessions_and_the_audit_log_do_not_change_the_revision() -> None:
    ada = factories.everything()
    before = revision_helpers.state()

    agent_sessions.change(
        ada.pk, "s", lambda session: (None, values.with_change(session, "toolkit", "dev", True, None))
    )
    models.AgentSession.objects.all().delete()
    audit_writing.record(
        actor="o", via="api", action="x", subject_kind="agent", subject_key="ada", before=None, after=None
    )

    assert revision_helpers.state() == before


@pytest.mark.django_db
def test_a_write_that_matches_no_row_does_not_change_the_revision() -> None:
    factories.everything()
    before = revision_helpers.state()

    models.Tool.objects.filter(key="nobody").update(description="x")
    models.ToolkitSwitch.objects.filter(on=False).delete()

    assert revision_helpers.state() == before


@pytest.mark.django_db
def test_a_rolled_back_revision_number_is_reused_with_another_stamp() -> None:
    factories.everything()
    states = []
    for description in ("one", "other"):
        with transaction.atomic():
            models.Tool.objects.update(description=description)
            states.append(revision_helpers.state())
            transaction.set_rollback(True)

    assert states[0].number == states[1].number
    assert states[0].catalog_stamp != states[1].catalog_stamp


@pytest.mark.django_db
def test_a_rolled_back_change_is_not_answered_from_the_cache() -> None:
    factories.everything()

    for description in ("one", "other"):
        with transaction.atomic():
            models.Tool.objects.filter(key="run").update(description=description)
            models.ToolkitSwitch.objects.update(on=False)
            snapshot = snapshots.find("ada", None)
            assert snapshot.catalog.tools["run"].description == description
            assert snapshot.agent.switches == {"dev": False}
            transaction.set_rollback(True)

        snapshot = snapshots.find("ada", None)
        assert snapshot.catalog.tools["run"].description == ""
        assert snapshot.agent.switches == {"dev": True}


WRITES: dict[str, Callable[[], object]] = {
    "a save": lambda: revision_helpers.with_new_description(models.Tool.objects.get(key="run")).save(),
    "a bulk creation": CATALOG["a bulk creation"],
    "a bulk update": CATALOG["a bulk update"],
    "an update": CATALOG["an update"],
    "SQL": CATALOG["an update in SQL"],
    "a renamed tool in a switch's toolkit": lambda: models.Tool.objects.filter(key="run").update(
        key="execute"
    ),
    "a changed switch": AGENT["a changed switch"],
    "a cleared switch": AGENT["a cleared switch"],
    "a switch changed in SQL": AGENT["a switch changed in SQL"],
    "a renamed toolkit": lambda: models.Toolkit.objects.update(key="tools"),
    "an updated agent": AGENT["an update"],
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_another_process_sees_a_write_in_its_next_answer(
    another_process: Process, write: Callable[[], object]
) -> None:
    factories.everything()
    before = another_process.ask("ada")
    assert another_process.ask("ada") == before

    write()

    assert another_process.ask("ada") != before


@pytest.mark.django_db(transaction=True)
def test_another_process_sees_a_loaded_fixture_in_its_next_answer(
    another_process: Process, tmp_path: Path
) -> None:
    factories.everything()
    fixture = tmp_path / "flip.json"
    fields = {"agent": ["ada"], "toolkit": ["dev"], "on": False}
    fixture.write_text(json.dumps([{"model": "toolbelt.toolkitswitch", "fields": fields}]))
    assert another_process.ask("ada")["switches"] == {"dev": True}

    call_command("loaddata", str(fixture), verbosity=0)

    assert another_process.ask("ada")["switches"] == {"dev": False}
