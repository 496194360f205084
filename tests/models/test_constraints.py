"""Tests that the database itself refuses invalid rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db import models as orm

from tests import factories
from toolbelt import models

pytestmark = pytest.mark.django_db

REFUSED: dict[str, Callable[[], object]] = {
    "a blank category": lambda: models.Category.objects.create(name=""),
    "a blank plugin": lambda: factories.plugin(""),
    "a blank tool": lambda: factories.tool(""),
    "a blank toolkit": lambda: factories.toolkit(""),
    "a blank loadout": lambda: factories.loadout(""),
    "a blank agent": lambda: factories.agent(""),
    "a blank sub-app": lambda: factories.sub_app(""),
    "a blank session": lambda: models.AgentSession.objects.create(agent=factories.agent(), key=""),
    "a category whose name differs only in case": lambda: [
        models.Category.objects.create(name=name) for name in ("crm", "CRM")
    ],
    "a plugin whose name differs only in case": lambda: [factories.plugin(name) for name in ("git", "Git")],
    "a tool whose key differs only in case": lambda: [factories.tool(key) for key in ("run", "Run")],
    "a toolkit whose key differs only in case": lambda: [factories.toolkit(key) for key in ("dev", "Dev")],
    "a loadout whose name differs only in case": lambda: [factories.loadout(n) for n in ("house", "House")],
    "an agent whose key differs only in case": lambda: [factories.agent(key) for key in ("ada", "Ada")],
    "a sub-app whose key differs only in case": lambda: [factories.sub_app(key) for key in ("chat", "Chat")],
    "a namespace of another plugin, ignoring case": lambda: [
        factories.plugin(name, namespace=namespace) for name, namespace in (("a", "git"), ("b", "GIT"))
    ],
    "a namespace with a double underscore": lambda: factories.plugin("a", namespace="a__b"),
    "a toolkit key with a double underscore": lambda: factories.toolkit("a__b"),
    "a tool with a reserved key": lambda: factories.tool("load_tools"),
    "a toolkit with a reserved key": lambda: factories.toolkit("search_tools"),
    "a plugin that is neither ready nor failed": lambda: factories.plugin(status="asleep"),
    "an agent of an unknown kind": lambda: factories.agent(kind="chief"),
    "a budget with an unknown on_exceed": lambda: factories.agent(on_exceed="panic"),
    "a negative limit": lambda: factories.agent(max_tools=-1),
    "a negative position": lambda: factories.toolkit(position=-1),
    "an audit entry with an unknown source": lambda: models.AuditEntry.objects.create(via="ether"),
    "a second revision row": lambda: models.Revision.objects.create(id=2),
}


@pytest.mark.parametrize("write", REFUSED.values(), ids=REFUSED)
def test_the_database_refuses_invalid_rows(write: Callable[[], object]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        write()


UNIQUE_RELATIONS: tuple[type[orm.Model], ...] = (
    models.Member,
    models.SubAppTool,
    models.SubAppAgent,
    models.AgentTool,
    models.AgentToolkit,
    models.ToolkitSwitch,
    models.ToolOverride,
)


@pytest.mark.parametrize("model", UNIQUE_RELATIONS, ids=lambda model: model.__name__)
def test_a_related_row_cannot_be_duplicated(model: type[orm.Model]) -> None:
    factories.everything()
    row = model._default_manager.first()
    assert row is not None
    row.pk = None

    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


def test_an_agent_cannot_have_two_sessions_of_the_same_key() -> None:
    ada = factories.agent()
    models.AgentSession.objects.create(agent=ada, key="s")

    with pytest.raises(IntegrityError), transaction.atomic():
        models.AgentSession.objects.create(agent=ada, key="s")


@pytest.mark.parametrize("table", ["toolbelt_toolkitswitch", "toolbelt_tooloverride"])
@pytest.mark.parametrize("junk", ["'maybe'", "2", "NULL"])
def test_a_switch_can_only_be_on_or_off(table: str, junk: str) -> None:
    factories.everything()

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f'UPDATE {table} SET "on" = {junk}')  # noqa: S608 (values in this test)


def test_several_plugins_can_have_no_namespace() -> None:
    factories.plugin("a")
    factories.plugin("b")

    assert models.Plugin.objects.filter(namespace="").count() == 2


@pytest.mark.parametrize(
    "model", [models.Tool, models.Toolkit, models.Plugin], ids=lambda model: model.__name__
)
def test_a_row_that_others_refer_to_cannot_be_deleted(model: type[orm.Model]) -> None:
    factories.everything()

    with pytest.raises(orm.ProtectedError):
        model._default_manager.all().delete()


def test_deleting_an_agent_deletes_only_its_own_rows() -> None:
    ada = factories.everything()
    models.AgentSession.objects.create(agent=ada, key="s")

    ada.delete()

    own_models = (models.AgentTool, models.AgentToolkit, models.ToolkitSwitch, models.ToolOverride)
    assert [row.objects.count() for row in (*own_models, models.AgentSession, models.SubAppAgent)] == [0] * 6
    assert (models.Tool.objects.count(), models.Toolkit.objects.count()) == (2, 1)
