"""Tests that the person behind a client that signed in is part of what people approve."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp.conftest import Client, Endpoint
from tests.oauth.conftest import SignIn, person
from tests.runtime import sample_plugins
from tests.runtime.conftest import Install
from tests.runtime.conftest import install as install
from tests.runtime.conftest import listed as listed
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.control.people import roles
from toolbelt.core import errors


@pytest.fixture
def stored(transactional_db: None) -> None:
    """Store nothing: the test installs what it needs."""


def test_the_person_of_a_client_neither_approves_its_calls_nor_lends_an_approval_to_another(
    settings: Any, install: Install, monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint
) -> None:
    ran: list[Any] = []

    async def search(self: Any, args: dict[str, Any]) -> Any:
        ran.append(args)
        return {"results": []}

    monkeypatch.setattr(sample_plugins.Kb, "search", search)
    settings.TOOLBELT_APPROVAL_WAIT = 0
    rule = {"key": "ask", "effect": "ask", "tools": ["kb__search"]}
    install("Kb", gate_rules=[rule], agents=[{"key": "ada", "tools": ["kb__search"]}])
    clients = {}
    for name in ("olive", "mona"):
        user = person(name)
        roles.assign(SETUP, name, "operator")
        clients[name] = Client(endpoint=endpoint, token=SignIn(user=user).sign_in())
    clients["olive"].call("kb__search", {"query": "x"})
    asked = call_approvals.find(models.Approval.objects.get().key)
    assert asked.asked_by == "olive"
    with pytest.raises(errors.Refused):
        call_approvals.approve(writing.by("olive", via="screen"), asked.key, asked.shown)
    call_approvals.approve(writing.by("mona", via="screen"), asked.key, asked.shown)
    clients["mona"].call("kb__search", {"query": "x"})
    assert ran == []
    clients["olive"].call("kb__search", {"query": "x"})
    assert ran == [{"query": "x"}]
