"""Tests that every row is found by its natural key, and that fixtures restore everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models as orm

from tests import factories
from toolbelt import models
from toolbelt.models import naming
from toolbelt.store import entries

pytestmark = pytest.mark.django_db

ALL: list[Any] = list(apps.get_app_config("toolbelt").get_models())
NAMED: list[Any] = [model for model in ALL if issubclass(model, naming.Named)]


@pytest.mark.parametrize("model", NAMED, ids=lambda model: model.__name__)
def test_a_row_is_found_by_its_natural_key_which_is_its_text(model: type[naming.Named]) -> None:
    ada = factories.everything()
    models.AgentSession.objects.create(agent=ada, key="s")
    models.PluginState.objects.create(namespace="kb", key="seen")
    models.Listing.objects.create(plugin=models.Plugin.objects.get())
    models.GateRule.objects.create(key="no_shell")
    row = model.objects.first()
    assert row is not None

    assert model.objects.get_by_natural_key(*row.natural_key()) == row
    assert str(row) == " / ".join(row.natural_key())


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.__name__)
def test_every_field_has_a_help_text(model: type[orm.Model]) -> None:
    exempt = {"id", "agent_id", "created", "changed"}
    without_help_text = [
        field.name
        for field in model._meta.concrete_fields
        if field.name not in exempt and not field.help_text and not field.is_relation
    ]

    assert without_help_text == []


def test_loaddata_restores_the_output_of_dumpdata(tmp_path: Path) -> None:
    factories.everything()
    before = entries.export()
    fixture = tmp_path / "belt.json"
    call_command("dumpdata", "toolbelt", natural_foreign=True, natural_primary=True, output=str(fixture))
    models.SubApp.objects.all().delete()
    models.Agent.objects.all().delete()
    for model in (models.Toolkit, models.Tool, models.Plugin, models.Loadout, models.Category):
        model.objects.all().delete()
    assert entries.export() == {}

    call_command("loaddata", str(fixture), verbosity=0)

    assert entries.export() == before


def test_loading_a_fixture_over_its_own_rows_changes_nothing(tmp_path: Path) -> None:
    factories.everything()
    before = entries.export()
    fixture = tmp_path / "belt.yaml"
    call_command(
        "dumpdata", "toolbelt", natural_foreign=True, natural_primary=True, output=str(fixture), format="yaml"
    )

    call_command("loaddata", str(fixture), verbosity=0)

    assert entries.export() == before
