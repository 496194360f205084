"""Tests that every scenario has the same answers over HTTP as from the core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from django.contrib.auth import models as logins
from django.test import Client

from tests.flows.test_scenarios_through_rows import SCENARIOS
from toolbelt import testing
from toolbelt.api import limits
from toolbelt.control.people import tokens
from toolbelt.core import meta_tools, scenarios, surface
from toolbelt.runtime import plugins, rendering


class Everything:
    """Runs every tool that is admitted, and answers nothing."""

    async def execute(
        self, *args: Any, check: Callable[[], Awaitable[None]], **options: Any
    ) -> dict[str, Any]:
        await check()
        return {}


class HttpWorld(testing.RowsWorld):
    """Asks and calls over HTTP. What a surface holds beside what is sent is looked up behind it.

    So a surface is judged twice: that what is sent is what the door says, here; and what the door says, by the
    expectations of the scenario.
    """

    def __init__(self) -> None:
        logins.User.objects.create_superuser("olga")
        text = tokens.issue(testing.OPERATOR, user="olga", scope="write").text
        self._client = Client(headers={"Authorization": f"Bearer {text}"})

    def surface(
        self,
        agent: str,
        session: str | None,
        request_id: str | None,
        message: str | None,
        subagent: str | None,
    ) -> surface.Surface:
        asked = {"session": session, "request_id": request_id, "subagent": subagent}
        sent = {key: value for key, value in asked.items() if value is not None}
        address = f"/api/v1/agents/{agent}/surface"
        said = super().surface(agent, session, request_id, message, subagent)
        if message is None:
            got = self._client.get(address, sent)
        else:
            got = self._client.post(address, sent | {"message": message}, "application/json")
        beside = {"declared": rendering.delta(said, {})["declared"], "delta": None, "provider": {}}
        assert got.json() == {**said.document(), **beside}
        return said

    def call(
        self,
        agent: str,
        session: str | None,
        request_id: str | None,
        tool: str,
        arguments: Any,
        subagent: str | None,
    ) -> Mapping[str, Any]:
        asked = {"session": session, "request_id": request_id, "subagent": subagent}
        sent = {key: value for key, value in asked.items() if value is not None}
        body = sent | {"tool": tool, "arguments": arguments}
        sent_to = f"/api/v1/agents/{agent}/calls"
        answer: dict[str, Any] = self._client.post(sent_to, body, "application/json").json()
        if tool in meta_tools.DEFINITIONS and not answer["is_error"]:
            return {"is_error": False, **answer["content"]}
        return answer


@pytest.mark.django_db
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_a_scenario_holds_over_http(
    scenario: dict[str, Any], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TOOLBELT_API_PER_MINUTE = 0
    monkeypatch.setattr(plugins, "serves", lambda plugin, tool: True)
    monkeypatch.setattr(plugins, "registry", Everything)
    limits.rates.forget()
    assert [str(failure) for failure in scenarios.run(scenario, HttpWorld())] == []
