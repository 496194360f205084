"""Tests of the answer of ``search_tools``: short, in pages, and without tools that the agent may not have."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import admitting, agents, catalog, dispatch, schema, search_results
from toolbelt.core.rules import budgets
from toolbelt.store import token_counts

# Texts of each kind that takes mail_catalog tokens.
LONG = ["🜁" * 3000, "x" * 3000, "zQ7-" * 800, "\u202e\n\t" * 900, "word " * 2000, "字" * 3000]


def answer(
    stored: catalog.Catalog, ada: agents.Agent, query: str, *, is_dispatch: bool = False, **arguments: Any
) -> dict[str, Any]:
    stored = dataclasses.replace(stored, count_tokens=token_counts.count, derived={})
    snapshot = building.snapshot(stored, ada)
    resolved = budgets.resolve(snapshot)
    given = {"query": query, **arguments}
    if is_dispatch:
        response = dispatch.search_tools(resolved, given)
    else:
        response = admitting.meta(resolved, snapshot, "search_tools", given)
    assert isinstance(response, admitting.MetaAnswer)
    return dict(response.content)


def mail_catalog(count: int, **fields: Any) -> catalog.Catalog:
    tools = [
        building.tool(f"mail__send_{number:03}", **{"description": "Send mail.", **fields})
        for number in range(count)
    ]
    return building.catalog_of(tools, toolkits=[building.toolkit("post", [tool.key for tool in tools])])


@pytest.mark.parametrize("is_dispatch", [False, True])
@pytest.mark.parametrize("text", LONG)
def test_an_answer_never_exceeds_600_tokens(text: str, is_dispatch: bool) -> None:
    tools = [
        building.tool(
            f"k{number}-{'zQ7-' * 15}"[:60],
            description=f"Send mail {text}",
            input_schema=json.dumps({"type": "object", "properties": {text[:2000]: {"description": text}}}),
        )
        for number in range(40)
    ]
    kit = building.toolkit("p" + "zQ7-" * 15, [tool.key for tool in tools])
    tools = [dataclasses.replace(tool, plugin="x") for tool in tools]
    stored = building.catalog_of(tools, toolkits=[kit])
    ada = building.agent(allowed=[kit.key])
    for query in ("send mail", "send mail " + text):
        response = answer(stored, ada, query, is_dispatch=is_dispatch, limit=50)
        assert response["results"]
        assert token_counts.count(schema.canonical(response)) <= search_results.MAX_TOKENS
        for result in response["results"]:
            assert result["description"].isprintable()


def test_ten_ordinary_results_fit_in_an_answer() -> None:
    description = "Send a message to one or more recipients of the address book. It returns the message's id."
    response = answer(
        mail_catalog(30, description=description), building.agent(allowed="post"), "send a message"
    )
    assert len(response["results"]) == 10
    assert response["results"][0]["description"].endswith("of the address book.")


def test_next_offset_pages_through_all_results() -> None:
    stored, ada = mail_catalog(45), building.agent(allowed="post")
    keys: list[str] = []
    offset: int | None = 0
    while offset is not None:
        response = answer(stored, ada, "send mail", offset=offset, limit=7)
        keys += [result["tool"] for result in response["results"]]
        offset = response.get("next_offset")
    assert keys == sorted(stored.tools)
    assert answer(stored, ada, "send mail", offset=500)["results"] == []


def test_toolkits_are_ranked_and_limited_to_loadable_ones() -> None:
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
    response = answer(stored, building.agent(allowed="art mail parcels"), "send mail")
    assert response["toolkits"] == ["mail", "parcels"]
    assert "hidden" not in json.dumps(response)


def test_a_match_by_meaning_is_labeled() -> None:
    stored = building.catalog_of(
        [building.tool("images__make", description="Create a picture.")], toolkits={"art": "images__make"}
    )
    (result,) = answer(stored, building.agent(allowed="art"), "photos")["results"]
    assert result["matched"] == "similar meaning"


def test_dispatch_results_include_schemas_and_an_exact_name_the_full_one() -> None:
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
    (full,) = answer(stored, ada, " mail__send_all ", is_dispatch=True)["results"]
    assert full["description"] == "Send mail to all. Slowly."
    assert len(full["input_schema"]["properties"]) == 200


def test_the_exact_name_of_a_disallowed_tool_finds_nothing() -> None:
    stored = building.catalog_of(
        [building.tool("mail__send"), building.tool("vault__open")],
        toolkits={"post": "mail__send", "safe": "vault__open"},
    )
    response = answer(stored, building.agent(allowed="post"), "vault__open", is_dispatch=True)
    assert response["results"] == []


def test_tools_that_the_budget_cannot_fit_do_not_displace_loadable_ones() -> None:
    mail = [building.tool(f"mail__send_{number:02}", description="Send mail.") for number in range(60)]
    stored = building.catalog_of(
        [*mail, building.tool("post__parcels", description="Send parcels.")],
        toolkits={"mail": " ".join(tool.key for tool in mail), "post": "post__parcels"},
    )
    ada = building.agent(allowed="mail post", budget=agents.Budget(max_tools=10, on_exceed="defer"))
    response = answer(stored, ada, "send mail", limit=5)
    assert [result["tool"] for result in response["results"]] == ["post__parcels"]
    assert response["toolkits"] == ["post"]
