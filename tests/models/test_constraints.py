"""The database itself refuses invalid rows, by any writer."""

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
    "a category whose name differs in case alone": lambda: [
        models.Category.objects.create(name=name) for name in ("crm", "CRM")
    ],
    "a plugin whose name differs in case alone": lambda: [factories.plugin(name) for name in ("git", "Git")],
    "a tool whose key differs in case alone": lambda: [factories.tool(key) for key in ("run", "Run")],
    "a toolkit whose key differs in case alone": lambda: [factories.toolkit(key) for key in ("dev", "Dev")],
    "a loadout whose name differs in case alone": lambda: [factories.loadout(n) for n in ("house", "House")],
    "an agent whose key differs in case alone": lambda: [factories.agent(key) for key in ("ada", "Ada")],
    "a sub-app whose key differs in case alone": lambda: [factories.sub_app(key) for key in ("chat", "Chat")],
    "a namespace that another plugin has, whatever the case": lambda: [
        factories.plugin(name, namespace=namespace) for name, namespace in (("a", "git"), ("b", "GIT"))
    ],
    "a namespace with the sign that ends one": lambda: factories.plugin("a", namespace="a__b"),
    "a toolkit's key with the sign that ends a namespace": lambda: factories.toolkit("a__b"),
    "a tool with a name of Toolbelt's own": lambda: factories.tool("load_tools"),
    "a toolkit with a name of Toolbelt's own": lambda: factories.toolkit("search_tools"),
    "a plugin that is neither ready nor failed": lambda: factories.plugin(status="asleep"),
    "an agent of no known kind": lambda: factories.agent(kind="chief"),
    "a budget with no known consequence": lambda: factories.agent(on_exceed="panic"),
    "a limit below nothing": lambda: factories.agent(max_tools=-1),
    "a position below the first": lambda: factories.toolkit(position=-1),
    "a change that came through no known shell": lambda: models.AuditEntry.objects.create(via="ether"),
    "a second row of the revision": lambda: models.Revision.objects.create(id=2),
}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED)
def test_the_database_refuses(wrong: Callable[[], object]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        wrong()


ONCE: tuple[type[orm.Model], ...] = (
    models.Member,
    models.SubAppTool,
    models.SubAppAgent,
    models.AgentTool,
    models.AgentToolkit,
    models.ToolkitSwitch,
    models.ToolOverride,
)


@pytest.mark.parametrize("model", ONCE, ids=lambda model: model.__name__)
def test_nothing_stands_twice_under_the_same_thing(model: type[orm.Model]) -> None:
    factories.everything()
    row = model._default_manager.first()
    assert row is not None
    row.pk = None

    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


def test_an_agent_has_one_session_of_a_name() -> None:
    ada = factories.agent()
    models.AgentSession.objects.create(agent=ada, key="s")

    with pytest.raises(IntegrityError), transaction.atomic():
        models.AgentSession.objects.create(agent=ada, key="s")


@pytest.mark.parametrize("table", ["toolbelt_toolkitswitch", "toolbelt_tooloverride"])
@pytest.mark.parametrize("junk", ["'maybe'", "2", "NULL"])
def test_a_switch_is_on_or_off_and_nothing_in_between(table: str, junk: str) -> None:
    factories.everything()

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f'UPDATE {table} SET "on" = {junk}')  # noqa: S608 (words in this test)


def test_two_plugins_may_both_be_without_a_namespace() -> None:
    factories.plugin("a")
    factories.plugin("b")

    assert models.Plugin.objects.filter(namespace="").count() == 2


@pytest.mark.parametrize(
    "model", [models.Tool, models.Toolkit, models.Plugin], ids=lambda model: model.__name__
)
def test_what_others_point_at_is_not_deleted(model: type[orm.Model]) -> None:
    factories.everything()

    with pytest.raises(orm.ProtectedError):
        model._default_manager.all().delete()


def test_deleting_an_agent_deletes_what_is_its_own_and_nothing_else() -> None:
    ada = factories.everything()
    models.AgentSession.objects.create(agent=ada, key="s")

    ada.delete()

    its_own = (models.AgentTool, models.AgentToolkit, models.ToolkitSwitch, models.ToolOverride)
    assert [row.objects.count() for row in (*its_own, models.AgentSession, models.SubAppAgent)] == [0] * 6
    assert (models.Tool.objects.count(), models.Toolkit.objects.count()) == (2, 1)
