"""Tests that every scenario has the same answers over HTTP as from the core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from django.contrib.auth import models as logins
from django.test import Client

from tests.core.test_scenarios import SCENARIOS
from toolbelt import testing
from toolbelt.api import limits
from toolbelt.control.people import tokens
from toolbelt.core import meta_tools, scenarios, surface
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import plugins
from toolbelt.runtime.surfaces import rendering


class AnyPlugin:
    """A plugin registry that runs every admitted tool and returns an empty result."""

    async def execute(
        self, *args: Any, check: Callable[[], Awaitable[None]], **options: Any
    ) -> dict[str, Any]:
        await check()
        return {}


class HttpWorld(testing.RowsWorld):
    """A world that asks and calls over HTTP.

    A surface is checked twice: the HTTP response must equal the surface from Python, and that surface must meet the
    expectations of the scenario.
    """

    def __init__(self) -> None:
        logins.User.objects.create_superuser("olga")
        text = tokens.issue(testing.OPERATOR, user="olga", scope="write").text
        self._client = Client(headers={"Authorization": f"Bearer {text}"})

    def surface(self, key: RequestKey, message: str | None) -> surface.Surface:
        sent = _sent(key)
        address = f"/api/v1/agents/{key.agent}/surface"
        expected = super().surface(key, message)
        if message is None:
            response = self._client.get(address, sent)
        else:
            response = self._client.post(address, sent | {"message": message}, "application/json")
        other_fields = {"declared": rendering.delta(expected, {})["declared"], "delta": None, "provider": {}}
        assert response.json() == {**expected.document(), **other_fields}
        return expected

    def call(self, key: RequestKey, tool: str, arguments: Any) -> Mapping[str, Any]:
        body = _sent(key) | {"tool": tool, "arguments": arguments}
        url = f"/api/v1/agents/{key.agent}/calls"
        answer: dict[str, Any] = self._client.post(url, body, "application/json").json()
        if tool in meta_tools.DEFINITIONS and not answer["is_error"]:
            return {"is_error": False, **answer["content"]}
        return answer


def _sent(key: RequestKey) -> dict[str, str]:
    fields = key._asdict()
    return {name: value for name, value in fields.items() if name != "agent" and value is not None}


@pytest.mark.django_db
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_a_scenario_holds_over_http(
    scenario: dict[str, Any], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TOOLBELT_API_PER_MINUTE = 0
    monkeypatch.setattr(plugins, "serves", lambda plugin, tool: True)
    monkeypatch.setattr(plugins, "registry", AnyPlugin)
    limits.rates.forget()
    assert [str(failure) for failure in scenarios.run(scenario, HttpWorld())] == []
