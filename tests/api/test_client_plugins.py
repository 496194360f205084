"""Only operators and named agents declare tools over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import SETUP, Asking, of_operator
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

TOOLS = "/client-plugins/shop/tools"
REFUND = {"name": "refund", "description": "Refund an order."}


@pytest.fixture
def ada(db: None) -> Asking:
    belts.import_(
        SETUP,
        {
            "plugins": [{"name": "shop", "namespace": "shop", "declared_by": ["ada"]}],
            "agents": [{"key": "ada"}, {"key": "bob"}],
        },
    )
    return Asking(tokens.issue(SETUP, agent="ada").text)


def declare(asking: Asking, *tools: Any, **headers: str) -> Any:
    return asking.put(TOOLS, {"tools": list(tools)}, **headers)


def test_a_named_agent_declares_and_reads_its_tools(ada: Asking) -> None:
    done = declare(ada, REFUND)
    assert done.status_code == 200
    assert done.json()["unseen"] == ["shop__refund"]
    assert done.json()["keys"] == {"refund": "shop__refund"}
    read = ada.get(TOOLS)
    assert (read["ETag"], read.json()["last_declared"] is not None) == (done["ETag"], True)
    assert read.json()["tools"][0]["name"] == "refund"
    assert ada.get(TOOLS, **{"If-None-Match": done["ETag"]}).status_code == 304
    assert models.AuditEntry.objects.filter(action="tool.create").get().actor == "agent:ada"


def test_the_key_of_a_tool_is_found_by_its_name_in_the_declaration(ada: Asking) -> None:
    done = declare(ada, REFUND, {"name": "shop__ship"})
    assert done.json()["keys"] == {"refund": "shop__refund", "shop__ship": "shop__ship"}
    assert declare(ada, REFUND, {"name": "shop__ship"}).json()["keys"] == done.json()["keys"]


def test_an_operator_declares(ada: Asking) -> None:
    assert declare(Asking(of_operator("olga", superuser=True, scope="write")), REFUND).status_code == 200


def test_another_agent_finds_no_such_plugin(ada: Asking) -> None:
    bob = Asking(tokens.issue(SETUP, agent="bob").text)
    answer = declare(bob, REFUND)
    assert answer.status_code == bob.get(TOOLS).status_code == 404
    unknown = bob.put("/client-plugins/nothing/tools", {"tools": []})
    assert unknown.content == answer.content.replace(b"shop", b"nothing")
    assert not models.Tool.objects.exists()


def test_an_operator_who_may_only_read_declares_nothing(ada: Asking) -> None:
    assert declare(Asking(of_operator("vera", superuser=True, scope="read")), REFUND).status_code == 403


def test_a_declaration_that_expects_another_list_changes_nothing(ada: Asking) -> None:
    first = declare(ada, REFUND)["ETag"]
    declare(ada, {"name": "ship"})
    assert declare(ada, REFUND, **{"If-Match": first}).status_code == 412
    assert declare(ada, REFUND, **{"If-Match": ada.get(TOOLS)["ETag"]}).status_code == 200


def test_a_declaration_cannot_set_what_belongs_to_operators(ada: Asking) -> None:
    answer = declare(ada, {**REFUND, "default_on": True})
    assert answer.status_code == 422
    assert "default_on" in answer.json()["errors"][0]["path"]
