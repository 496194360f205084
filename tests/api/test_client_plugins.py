"""Tests that only operators and allowed agents can declare tools over HTTP."""

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


def declare(api_client: Asking, *tools: Any, **headers: str) -> Any:
    return api_client.put(TOOLS, {"tools": list(tools)}, **headers)


def test_an_allowed_agent_can_declare_and_read_its_tools(ada: Asking) -> None:
    declared = declare(ada, REFUND)
    assert declared.status_code == 200
    assert declared.json()["unseen"] == ["shop__refund"]
    assert declared.json()["keys"] == {"refund": "shop__refund"}
    read = ada.get(TOOLS)
    assert (read["ETag"], read.json()["last_declared"] is not None) == (declared["ETag"], True)
    assert read.json()["tools"][0]["name"] == "refund"
    assert ada.get(TOOLS, **{"If-None-Match": declared["ETag"]}).status_code == 304
    declared = models.AuditEntry.objects.filter(action="tool.appear").get()
    assert (declared.actor_kind, declared.asked_by) == ("program", "agent:ada")


def test_a_declaration_returns_the_keys_of_its_tools_by_name(ada: Asking) -> None:
    declared = declare(ada, REFUND, {"name": "shop__ship"})
    assert declared.json()["keys"] == {"refund": "shop__refund", "shop__ship": "shop__ship"}
    assert declare(ada, REFUND, {"name": "shop__ship"}).json()["keys"] == declared.json()["keys"]


def test_an_operator_can_declare_tools(ada: Asking) -> None:
    assert declare(Asking(of_operator("olga", superuser=True, scope="write")), REFUND).status_code == 200


def test_another_agent_does_not_find_the_plugin(ada: Asking) -> None:
    bob = Asking(tokens.issue(SETUP, agent="bob").text)
    answer = declare(bob, REFUND)
    assert answer.status_code == bob.get(TOOLS).status_code == 404
    unknown = bob.put("/client-plugins/nothing/tools", {"tools": []})
    assert unknown.content == answer.content.replace(b"shop", b"nothing")
    assert not models.Tool.objects.exists()


def test_a_read_only_token_cannot_declare_tools(ada: Asking) -> None:
    assert declare(Asking(of_operator("vera", superuser=True, scope="read")), REFUND).status_code == 403


def test_a_declaration_with_an_outdated_etag_is_refused(ada: Asking) -> None:
    first = declare(ada, REFUND)["ETag"]
    declare(ada, {"name": "ship"})
    assert declare(ada, REFUND, **{"If-Match": first}).status_code == 412
    assert declare(ada, REFUND, **{"If-Match": ada.get(TOOLS)["ETag"]}).status_code == 200


def test_a_declaration_cannot_set_what_operators_decide(ada: Asking) -> None:
    answer = declare(ada, {**REFUND, "default_on": True})
    assert answer.status_code == 422
    assert "default_on" in answer.json()["errors"][0]["path"]
