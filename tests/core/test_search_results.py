"""The answer of ``search_tools``: short lines, in pages, and nothing of what the agent may not have."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, budgets, calls, catalog, dispatch, schema, search_results
from toolbelt.store import token_counts

# Of each kind of text that costs many tokens.
LONG = ["🜁" * 3000, "x" * 3000, "zQ7-" * 800, "\u202e\n\t" * 900, "word " * 2000, "字" * 3000]


def answer(
    stored: catalog.Catalog, ada: agents.Agent, query: str, *, is_dispatch: bool = False, **arguments: Any
) -> dict[str, Any]:
    stored = dataclasses.replace(stored, count_tokens=token_counts.count, derived={})
    snapshot = building.snapshot(stored, ada)
    resolved = budgets.resolve(snapshot)
    given = {"query": query, **arguments}
    if is_dispatch:
        made = dispatch.search_tools(resolved, given, has_session=True)
    else:
        made = calls.meta(resolved, snapshot, "search_tools", given)
    assert isinstance(made, calls.MetaAnswer)
    return dict(made.content)


def many(count: int, **fields: Any) -> catalog.Catalog:
    tools = [
        building.tool(f"mail__send_{number:03}", **{"description": "Send mail.", **fields})
        for number in range(count)
    ]
    return building.catalog_of(tools, toolkits=[building.toolkit("post", [tool.key for tool in tools])])


@pytest.mark.parametrize("is_dispatch", [False, True])
@pytest.mark.parametrize("text", LONG)
def test_an_answer_stays_below_600_tokens_whatever_the_texts_are(text: str, is_dispatch: bool) -> None:
    tools = [
        building.tool(
            f"k{number}-{'zQ7-' * 15}"[:60],
            description=f"Send mail {text}",
            input_schema=json.dumps({"type": "object", "properties": {text[:2000]: {"description": text}}}),
        )
        for number in range(40)
    ]
    kit = building.toolkit("p" + "zQ7-" * 15, [tool.key for tool in tools])
    stored = building.catalog_of(tools, toolkits=[kit], plugins=[catalog.Plugin(name="x", in_code=True)])
    tools = [dataclasses.replace(tool, plugin="x") for tool in tools]
    stored = building.catalog_of(tools, toolkits=[kit])
    ada = building.agent(allowed=[kit.key])
    for query in ("send mail", "send mail " + text):
        made = answer(stored, ada, query, is_dispatch=is_dispatch, limit=50)
        assert made["results"]
        assert token_counts.count(schema.canonical(made)) <= search_results.MAX_TOKENS
        for result in made["results"]:
            assert result["description"].isprintable()


def test_ten_ordinary_results_fit() -> None:
    description = "Send a message to one or more recipients of the address book. It returns the message's id."
    made = answer(many(30, description=description), building.agent(allowed="post"), "send a message")
    assert len(made["results"]) == 10
    assert made["results"][0]["description"].endswith("of the address book.")


def test_pages_follow_each_other_until_the_last() -> None:
    stored, ada = many(45), building.agent(allowed="post")
    keys: list[str] = []
    offset: int | None = 0
    while offset is not None:
        made = answer(stored, ada, "send mail", offset=offset, limit=7)
        keys += [result["tool"] for result in made["results"]]
        offset = made.get("next_offset")
    assert keys == sorted(stored.tools)
    assert answer(stored, ada, "send mail", offset=500)["results"] == []


def test_toolkits_come_best_first_and_only_those_that_the_agent_could_load() -> None:
    stored = building.catalog_of(
        [
            building.tool("a__send_mail", description="Send mail."),
            building.tool("a__read_mail", description="Read mail."),
            building.tool("b__send_parcel", description="Send a parcel."),
            building.tool("c__paint", description="Paint."),
        ],
        toolkits={
            "hidden": "a__send_mail b__send_parcel",
            "mail": "a__send_mail a__read_mail",
            "parcels": "b__send_parcel",
            "art": "c__paint",
        },
    )
    made = answer(stored, building.agent(allowed="art mail parcels"), "send mail")
    assert made["toolkits"] == ["mail", "parcels"]
    assert "hidden" not in json.dumps(made)


def test_a_tool_that_matches_by_meaning_says_so() -> None:
    stored = building.catalog_of(
        [building.tool("images__make", description="Create a picture.")], toolkits={"art": "images__make"}
    )
    (result,) = answer(stored, building.agent(allowed="art"), "photos")["results"]
    assert result["matched"] == "similar meaning"


def test_through_call_tool_the_best_bring_their_schemas_and_an_exact_name_all_of_it() -> None:
    input_schema = json.dumps(
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(200)}}
    )
    small = json.dumps({"type": "object", "properties": {"to": {"type": "string"}}})
    stored = building.catalog_of(
        [
            building.tool("mail__send", description="Send mail.", input_schema=small),
            building.tool(
                "mail__send_all", description="Send mail to all. Slowly.", input_schema=input_schema
            ),
        ],
        toolkits={"post": "mail__send mail__send_all"},
    )
    ada = building.agent(allowed="post")
    results = answer(stored, ada, "send mail", is_dispatch=True)["results"]
    assert {result["tool"]: "input_schema" in result for result in results} == {
        "mail__send": True,
        "mail__send_all": False,
    }
    (whole,) = answer(stored, ada, " mail__send_all ", is_dispatch=True)["results"]
    assert whole["description"] == "Send mail to all. Slowly."
    assert len(whole["input_schema"]["properties"]) == 200


def test_an_exact_name_of_a_tool_that_the_agent_may_not_have_brings_nothing() -> None:
    stored = building.catalog_of(
        [building.tool("mail__send"), building.tool("vault__open")],
        toolkits={"post": "mail__send", "safe": "vault__open"},
    )
    made = answer(stored, building.agent(allowed="post"), "vault__open", is_dispatch=True)
    assert made["results"] == []


def test_tools_that_the_budget_has_no_room_for_take_no_places_of_those_that_can_be_loaded() -> None:
    mail = [building.tool(f"mail__send_{number:02}", description="Send mail.") for number in range(60)]
    stored = building.catalog_of(
        [*mail, building.tool("post__parcels", description="Send parcels.")],
        toolkits={"mail": " ".join(tool.key for tool in mail), "post": "post__parcels"},
    )
    ada = building.agent(allowed="mail post", budget=agents.Budget(max_tools=10, on_exceed="defer"))
    made = answer(stored, ada, "send mail", limit=5)
    assert [result["tool"] for result in made["results"]] == ["post__parcels"]
    assert made["toolkits"] == ["post"]
