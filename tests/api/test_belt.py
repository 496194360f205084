"""A whole configuration is exported and imported over HTTP, in both formats, as a whole or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.api.conftest import BELT, SETUP, Asking, of_operator
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.reports import queries

YAML = "application/yaml"
NEW = {
    "toolkits": [{"key": "reading", "title": "Books", "members": ["kb__find", "kb__read"]}],
    "agents": [{"key": "eve", "tools_config": {"reading": True}}, {"key": "ada", **BELT["agents"][0]}],
}


def put(asking: Asking, text: str, media_type: str = YAML, query: str = "", **headers: str) -> Any:
    return asking._client.put(f"/api/v1/belt{query}", text, content_type=media_type, headers=headers or None)


def test_it_goes_out_as_json(olga: Asking) -> None:
    answer = olga.get("/belt")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json() == belts.export()


def test_it_goes_out_as_yaml_to_whoever_prefers_that(olga: Asking) -> None:
    answer = olga.get("/belt", Accept="application/yaml, application/json;q=0.5")
    assert answer["Content-Type"] == YAML
    assert "Accept" in answer["Vary"]
    assert yaml.safe_load(answer.content) == belts.export()
    assert answer["ETag"] != olga.get("/belt")["ETag"]


def test_what_was_not_changed_is_not_sent_again(olga: Asking) -> None:
    tag = olga.get("/belt")["ETag"]
    assert olga.get("/belt", **{"If-None-Match": tag}).status_code == 304
    switches.override(SETUP, "ada", "clock", False)
    assert olga.get("/belt", **{"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize("accept", [YAML, "application/json"])
def test_what_went_out_comes_in_and_changes_nothing(olga: Asking, accept: str) -> None:
    read = olga.get("/belt", Accept=accept)
    answer = put(olga, read.content.decode(), accept)
    assert answer.status_code == 200
    assert (answer.json()["created"], answer.json()["changed"], answer.json()["differences"]) == (0, 0, [])


def test_an_import_says_what_it_did_and_is_one_act(olga: Asking) -> None:
    answer = olga.put("/belt?reason=spring", NEW)

    assert answer.status_code == 200
    told = answer.json()
    assert (told["written"], told["created"], told["changed"], told["same"]) == (True, 1, 1, 1)
    kit, eve = told["differences"]
    assert (kit["kind"], kit["name"], kit["before"]["title"], kit["after"]["title"]) == (
        "toolkit",
        "reading",
        "Reading",
        "Books",
    )
    assert "members" not in kit["before"]
    assert (eve["before"], eve["after"]) == (None, NEW["agents"][0])
    assert entries.read("agent", "eve") == NEW["agents"][0]
    written = queries.changes(actor="olga").entries
    assert {(one.via, one.reason) for one in written} == {("api", "spring")}
    assert len({one.batch for one in written}) == 1


def test_a_dry_run_says_the_same_and_writes_nothing(olga: Asking) -> None:
    before, revision = belts.export(), belts.revision()

    dry = olga.put("/belt?dry_run=1", NEW)

    assert (dry.status_code, dry.json()["written"]) == (200, False)
    assert (belts.export(), belts.revision()) == (before, revision)
    assert queries.changes(actor="olga").total == 0
    done = olga.put("/belt", NEW).json()
    assert done == {**dry.json(), "written": True}


@pytest.mark.parametrize("query", ["", "?dry_run=1"])
def test_every_problem_is_told_with_its_path_and_nothing_is_written(olga: Asking, query: str) -> None:
    before = belts.export()
    answer = olga.put(
        f"/belt{query}",
        {
            "toolkits": [{"key": "new", "members": ["kb__fnd"]}],
            "agents": [{"key": "eve", "tools_config": {"raeding": True}}],
            "agent": [],
        },
    )
    assert answer.status_code == 422
    assert [one["path"] for one in answer.json()["errors"]] == [
        "toolkits.new.members[0]",
        "agents.eve.tools_config.raeding",
        "agent",
    ]
    assert belts.export() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents: [", "cannot be read"),
        ("agents: []\nagents: []", "is repeated in one mapping"),
        ("agents: &a []\ntools: *a", "aliases are not allowed"),
        ("[" * 2000, "nested more than"),
        ("a: !!python/object/apply:os.system ['true']", "cannot be read"),
        ("a: !!bool x", "cannot be read"),
        ("a: 2026-99-99", "cannot be read"),
        ("- agents", "A belt must be a mapping"),
        ("null", "A belt must be a mapping"),
        ("agents: 2026-01-01", "must be a list"),
    ],
)
def test_yaml_that_hides_something_is_refused(olga: Asking, text: str, said: str) -> None:
    answer = put(olga, text)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert said in answer.json()["detail"]


def test_bytes_that_are_no_text_and_other_forms_are_refused(olga: Asking) -> None:
    assert olga.put("/belt", b"\xff").status_code == 400
    assert put(olga, "\udcff".encode(errors="surrogateescape"), YAML).status_code == 422  # type: ignore[arg-type]
    assert put(olga, "x", "text/plain").status_code == 415


def test_whoever_saw_another_state_imports_nothing(olga: Asking) -> None:
    seen = olga.get("/belt", Accept=YAML)["ETag"]
    switches.override(SETUP, "ada", "clock", False)

    answer = olga.put("/belt", {"agents": [{"key": "eve"}]}, **{"If-Match": seen})

    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    seen = olga.get("/belt")["ETag"]
    assert put(olga, json.dumps({"agents": [{"key": "eve"}]}), **{"If-Match": seen}).status_code == 200


def test_one_who_comes_between_the_look_and_the_import_is_noticed(
    olga: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = olga.get("/belt")["ETag"]
    revision = belts.revision

    def look_and_be_overtaken() -> int:
        found = revision()
        monkeypatch.setattr(belts, "revision", revision)
        switches.override(SETUP, "ada", "clock", False)
        return found

    monkeypatch.setattr(belts, "revision", look_and_be_overtaken)
    answer = olga.put("/belt", {"agents": [{"key": "eve"}]}, **{"If-Match": seen})
    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")


def test_it_takes_the_permissions_for_what_it_holds(stored: None) -> None:
    mia = Asking(of_operator("mia", "add_agent", "change_agent"))
    assert mia.put("/belt", {"agents": [{"key": "eve"}]}).status_code == 200
    refused = mia.put("/belt?dry_run=1", {"agents": [], "loadouts": [{"name": "day"}]})
    assert refused.status_code == 403
    assert "toolbelt.add_loadout, toolbelt.change_loadout" in refused.json()["detail"]
    assert mia.get("/belt").status_code == 403
    looks = [f"view_{kind}" for kind in ("category", "plugin", "loadout", "subapp")]
    assert Asking(of_operator("ned", *looks)).get("/belt").status_code == 200
