"""Revisions and their triggers survive restores, fixtures, migrations and flushes."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from tests import factories
from tests.store import stamped
from toolbelt import models
from toolbelt.store import revisions, snapshots, triggers


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
    old = stamped.state()
    models.Tool.objects.update(description="x")
    before = stamped.state()

    call_command("loaddata", str(fixture), verbosity=0)

    after = stamped.state()
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
    before = stamped.state()
    assert revisions.check(None, ["default"]) == []
    triggers.remove(connection)
    triggers.remove(connection)
    models.Tool.objects.update(description="unseen")
    assert stamped.state() == before

    (warning,) = revisions.check(None, ["default"])
    assert warning.id == "toolbelt.W002"
    assert "migrate" in str(warning.hint)
    assert triggers.install(connection)

    assert revisions.check(None, ["default"]) == []
    assert stamped.state().catalog_stamp != before.catalog_stamp
    assert stamped.state().agents["ada"] != before.agents["ada"]
    assert not triggers.install(connection)


@pytest.mark.django_db(transaction=True)
def test_migrating_puts_missing_triggers_back() -> None:
    triggers.remove(connection)

    call_command("migrate", verbosity=0)

    assert triggers.missing(connection) == ()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_migrating_back_and_forth_leaves_all_triggers_in_place() -> None:
    call_command("migrate", "toolbelt", "zero", verbosity=0)
    assert triggers.missing(connection) == ()

    call_command("migrate", "toolbelt", verbosity=0)

    assert triggers.missing(connection) == ()
    factories.everything()
    assert stamped.state().catalog_stamp


@pytest.mark.django_db(transaction=True)
def test_flushing_the_database_leaves_it_watched() -> None:
    factories.everything()
    snapshots.find("ada", None)

    call_command("flush", interactive=False, verbosity=0)

    factories.agent("ada")
    assert snapshots.find("ada", None).catalog.tools == {}
