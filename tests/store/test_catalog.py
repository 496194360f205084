"""Tests that rows are loaded as values in order, and that invalid content does not raise an error."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from tests import factories
from toolbelt import models
from toolbelt.core import agents as consumers
from toolbelt.core import catalog as values
from toolbelt.core import schema
from toolbelt.store import agents, catalog, counts

pytestmark = pytest.mark.django_db


def test_a_tools_documents_are_loaded_as_canonical_text_or_empty() -> None:
    factories.everything()

    tools = catalog.load().tools

    assert tools["run"] == values.Tool(
        key="run",
        annotations='{"destructiveHint":true}',
        output_schema='{"type":"object"}',
        tokens=models.Tool.objects.get(key="run").tokens,
    )
    assert tools["git__status"].plugin == "git"
    assert (tools["git__status"].annotations, tools["git__status"].output_schema) == ("", "")
    assert tools["git__status"].input_schema == schema.EMPTY_TEXT


def test_a_catalog_is_loaded_in_order() -> None:
    b, a = factories.tool("b"), factories.tool("a")
    factories.toolkit("late", b, a, position=2)
    factories.toolkit("z", position=1)
    factories.toolkit("y", position=1)
    models.Member.objects.filter(tool=a).update(position=0)
    models.Member.objects.filter(tool=b).update(position=1)

    stored = catalog.load(number=3, stamp="x")

    assert (stored.number, stored.stamp) == (3, "x")
    assert list(stored.tools) == ["a", "b"]
    assert list(stored.toolkits) == ["y", "z", "late"]
    assert [member.tool for member in stored.toolkits["late"].members] == ["a", "b"]


def test_the_catalog_contains_every_stored_kind() -> None:
    factories.everything()

    stored = catalog.load()

    assert stored.categories == ("crm",)
    assert stored.plugins["git"].namespace == "git"
    assert stored.loadouts["house"] == values.Loadout(name="house", parent="minimal", plugins=("git",))
    assert stored.sub_apps["chat"] == values.SubApp(key="chat", tool_names=("run",), agents=("ada",))
    assert stored.toolkits["dev"].members == (
        values.Member(tool="git__status"),
        values.Member(tool="run", options={"shell": "sh"}),
    )
    assert stored.toolkits["dev"].tool_notes == {"run": "Take care."}
    assert stored.toolkits["dev"].triggers == (values.Trigger(name="x", any=("y",)),)


def test_an_agent_is_loaded_with_all_its_fields() -> None:
    ada = factories.everything()

    assert agents.load(ada.pk) == consumers.Agent(
        key="ada",
        kind="plan",
        tools=(consumers.AlwaysOn(tool="run", options={"shell": "sh"}),),
        switches={"dev": True},
        overrides={"git__status": False},
        allowed_toolkits=("dev",),
        initial_toolkits=("dev",),
        budget=consumers.Budget(max_tools=5),
        session_loadouts=("house",),
    )
    assert agents.load(0) is None
    totals = counts.count()
    assert (totals.agents, totals.to_review) == (1, 0)


def test_an_agent_without_limits_has_no_budget() -> None:
    factories.agent()

    (agent,) = agents.load_all()
    assert agent.budget is None


JUNK: dict[str, str] = {
    "numbers instead of names in a loadout": "UPDATE toolbelt_loadout SET plugins = '[1, null, {}]', disabled = '[[]]'",
    "numbers instead of notes": 'UPDATE toolbelt_toolkit SET tool_notes = \'{"run": 1, "x": null}\'',
    "invalid triggers": 'UPDATE toolbelt_toolkit SET triggers = \'[1, [], {"any": 3, "name": []}]\'',
    "invalid lists of an agent": "UPDATE toolbelt_agent SET session_loadouts = '[1]', subagent_kinds = '[{}]'",
    "a blank key of a toolkit": "UPDATE toolbelt_toolkit SET key = '  '",
    "a blank name of a loadout": "UPDATE toolbelt_loadout SET name = '\t'",
    "a blank key of an agent": "UPDATE toolbelt_agent SET key = ' '",
    "an invalid schema": "UPDATE toolbelt_tool SET input_schema = '{\"properties\": 3}'",
}


@pytest.mark.parametrize("statement", JUNK.values(), ids=JUNK)
def test_reading_tolerates_invalid_content(statement: str) -> None:
    factories.everything()
    with connection.cursor() as cursor:
        cursor.execute(statement)

    assert len(catalog.load().tools) == 2
    assert all(isinstance(agent, consumers.Agent) for agent in agents.load_all())


@pytest.mark.parametrize(("field", "value"), [("key", "dev"), ("key", "nobody")])
def test_toolkits_can_be_loaded_by_field(field: str, value: Any) -> None:
    factories.everything()
    factories.toolkit("other", models.Tool.objects.get(key="run"))

    assert [toolkit.key for toolkit in catalog.toolkits(**{field: value})] == (
        ["dev"] if value == "dev" else []
    )
