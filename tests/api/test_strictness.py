"""Tests that times and booleans are only accepted in one form, and parameters only once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Asking

TIME = "2026-11-22T14:05:00Z"
INVALID_BOOLEANS = ["1", "0", "yes", "on", "True", "1e0"]


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("address", ["/calls", "/changes"])
@pytest.mark.parametrize("value", ["1234", "0", "1732284300.5", "2026-11-22", "2026-11-22T14:05:00", "now"])
def test_a_time_in_the_query_cannot_be_a_number(olga: Asking, address: str, name: str, value: str) -> None:
    answer = olga.get(address, {name: value})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, name)
    assert olga.get(address, {name: TIME}).status_code == 200


@pytest.mark.parametrize("value", [1732284300, 1.5, "1732284300", True])
def test_a_time_in_a_body_cannot_be_a_number(olga: Asking, value: Any) -> None:
    for path, body, send, address in (
        ("expires", {"agent": "ada", "expires": value}, olga.post, "/tokens"),
        ("ends", {"on": True, "ends": value}, olga.put, "/agents/ada/switches/reading"),
    ):
        answer = send(address, body)
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)


@pytest.mark.parametrize("value", INVALID_BOOLEANS)
def test_a_boolean_in_the_query_must_be_true_or_false(olga: Asking, value: str) -> None:
    answer = olga.delete(f"/agents/ada/switches/dropping?confirm={value}")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "confirm")
    for name in ("blocked", "archived"):
        address = "/tools" if name == "blocked" else "/agents"
        assert olga.get(address, {name: value}).status_code == 422
        assert olga.get(address, {name: "true"}).status_code == 200
    assert olga.delete("/agents/ada/switches/dropping?confirm=true").status_code == 200


@pytest.mark.parametrize("value", [1, 0, 1.0, "true", "yes"])
def test_a_boolean_in_a_body_must_be_true_or_false(olga: Asking, value: Any) -> None:
    for path, body in (
        ("confirm", {"on": True, "confirm": value}),
        ("on", {"on": value}),
        ("was", {"on": True, "was": value}),
    ):
        answer = olga.put("/agents/ada/switches/reading", body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"].startswith(path)
    assert olga.put("/agents/ada/tools-config", {"reading": value}).status_code == 422


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("/toolkits?tool=clock&tool=kb__find", "tool"),
        ("/plugins?status=ok&status=ok", "status"),
        ("/calls?limit=1&limit=2", "limit"),
        ("/agents/ada/surface?session=s1&session=s2", "session"),
        ("/agents/ada/tools/clock/why?session=s1&session=s2", "session"),
        ("/agents?nonsense=1&nonsense=2", "nonsense"),
    ],
)
def test_a_repeated_parameter_is_refused(olga: Asking, address: str, name: str) -> None:
    answer = olga.get(address)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"path": name, "message": "repeated: give the parameter once"}]
