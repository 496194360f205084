"""Tests that revisions and their triggers survive restores, fixtures, migrations and flushes."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from tests import factories
from tests.store import revision_helpers
from toolbelt import models
from toolbelt.store import revisions, snapshots, triggers


@pytest.mark.django_db
def test_a_lost_revision_is_recreated_by_the_next_write() -> None:
    factories.everything()
    snapshots.find("ada", None)
    models.Revision.objects.all().delete()
    models.AgentRevision.objects.all().delete()
    assert snapshots.find("ada", None).number == 0

    models.ToolkitSwitch.objects.update(on=False)
    assert snapshots.find("ada", None).agent.switches == {"dev": False}
    models.Tool.objects.update(description="x")

    snapshot = snapshots.find("ada", None)
    assert snapshot.catalog.tools["run"].description == "x"
    assert snapshot.catalog_stamp
    assert snapshot.agent_stamp


@pytest.mark.django_db
def test_loading_a_fixture_does_not_restore_an_old_stamp(tmp_path: Path) -> None:
    factories.everything()
    fixture = tmp_path / "old.json"
    call_command("dumpdata", "toolbelt.Revision", "toolbelt.AgentRevision", output=str(fixture))
    old = revision_helpers.state()
    models.Tool.objects.update(description="x")
    before = revision_helpers.state()

    call_command("loaddata", str(fixture), verbosity=0)

    after = revision_helpers.state()
    assert after.number > before.number
    assert after.catalog_stamp not in (old.catalog_stamp, before.catalog_stamp)
    assert after.agents["ada"] not in (old.agents["ada"], before.agents["ada"])


@pytest.mark.django_db
def test_locking_creates_a_missing_revision_row() -> None:
    models.Revision.objects.all().delete()

    revisions.lock()
    revisions.lock()

    assert models.Revision.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_locking_outside_a_transaction_raises_an_error() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        revisions.lock()


@pytest.mark.django_db
def test_missing_triggers_are_reported_and_reinstalling_marks_everything_changed() -> None:
    factories.everything()
    before = revision_helpers.state()
    assert revisions.check(None, ["default"]) == []
    triggers.remove(connection)
    triggers.remove(connection)
    models.Tool.objects.update(description="unseen")
    assert revision_helpers.state() == before

    (warning,) = revisions.check(None, ["default"])
    assert warning.id == "toolbelt.W002"
    assert "migrate" in str(warning.hint)
    assert triggers.install(connection)

    assert revisions.check(None, ["default"]) == []
    assert revision_helpers.state().catalog_stamp != before.catalog_stamp
    assert revision_helpers.state().agents["ada"] != before.agents["ada"]
    assert not triggers.install(connection)


@pytest.mark.django_db(transaction=True)
def test_migrating_reinstalls_missing_triggers() -> None:
    triggers.remove(connection)

    call_command("migrate", verbosity=0)

    assert triggers.missing(connection) == ()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_migrating_back_and_forth_keeps_all_triggers() -> None:
    call_command("migrate", "toolbelt", "zero", verbosity=0)
    assert triggers.missing(connection) == ()

    call_command("migrate", "toolbelt", verbosity=0)

    assert triggers.missing(connection) == ()
    factories.everything()
    assert revision_helpers.state().catalog_stamp


@pytest.mark.django_db(transaction=True)
def test_flushing_the_database_invalidates_the_cache() -> None:
    factories.everything()
    snapshots.find("ada", None)

    call_command("flush", interactive=False, verbosity=0)

    factories.agent("ada")
    assert snapshots.find("ada", None).catalog.tools == {}
