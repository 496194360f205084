"""Tests that a belt is exported and imported over HTTP, as JSON and YAML, as a whole or not at all."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command

from tests.api.conftest import BELT, SETUP, Asking, of_operator
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.reports import queries

YAML = "application/yaml"
NEW = {
    "toolkits": [{"key": "reading", "title": "Books", "members": ["kb__find", "kb__read"]}],
    "agents": [{"key": "eve", "tools_config": {"reading": True}}, {"key": "ada", **BELT["agents"][0]}],
}


def put(api_client: Asking, text: str, media_type: str = YAML, query: str = "", **headers: str) -> Any:
    return api_client._client.put(
        f"/api/v1/belt{query}", text, content_type=media_type, headers=headers or None
    )


def test_a_belt_is_exported_as_json(olga: Asking) -> None:
    answer = olga.get("/belt")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.json() == belts.export()


def test_a_belt_is_exported_as_yaml_if_the_client_prefers_it(olga: Asking) -> None:
    answer = olga.get("/belt", Accept="application/yaml, application/json;q=0.5")
    assert answer["Content-Type"] == YAML
    assert "Accept" in answer["Vary"]
    assert yaml.safe_load(answer.content) == belts.export()
    assert answer["ETag"] != olga.get("/belt")["ETag"]


@pytest.mark.parametrize(("form", "media_type"), [("yaml", YAML), ("json", "application/json")])
def test_an_export_of_decisions_is_the_text_of_the_command(
    olga: Asking, form: str, media_type: str, tmp_path: Path
) -> None:
    file = tmp_path / f"belt.{form}"
    call_command("belt", "export", str(file), "--decisions", stdout=io.StringIO())
    answer = olga.get("/belt?decisions=true", Accept=media_type)
    assert answer.content == file.read_bytes()
    assert answer.content != olga.get("/belt", Accept=media_type).content
    assert answer["ETag"] != olga.get("/belt", Accept=media_type)["ETag"]
    known = {"Accept": media_type, "If-None-Match": answer["ETag"]}
    assert olga.get("/belt?decisions=true", **known).status_code == 304
    imported = put(olga, answer.content.decode(), media_type, **{"If-Match": answer["ETag"]})
    assert (imported.status_code, imported.json()["changed"]) == (200, 0)


def test_an_unchanged_belt_is_not_sent_again(olga: Asking) -> None:
    tag = olga.get("/belt")["ETag"]
    assert olga.get("/belt", **{"If-None-Match": tag}).status_code == 304
    switches.override(SETUP, "ada", "clock", False)
    assert olga.get("/belt", **{"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize("accept", [YAML, "application/json"])
def test_importing_an_export_changes_nothing(olga: Asking, accept: str) -> None:
    read = olga.get("/belt", Accept=accept)
    answer = put(olga, read.content.decode(), accept)
    assert answer.status_code == 200
    assert (answer.json()["created"], answer.json()["changed"], answer.json()["differences"]) == (0, 0, [])


def test_an_import_reports_its_changes_and_is_one_batch(olga: Asking) -> None:
    answer = olga.put("/belt?reason=spring", NEW)

    assert answer.status_code == 200
    imported = answer.json()
    assert (imported["written"], imported["created"], imported["changed"], imported["same"]) == (
        True,
        1,
        1,
        1,
    )
    kit, eve = imported["differences"]
    assert (kit["kind"], kit["name"], kit["before"]["title"], kit["after"]["title"]) == (
        "toolkit",
        "reading",
        "Reading",
        "Books",
    )
    assert "members" not in kit["before"]
    assert (eve["before"], eve["after"]) == (None, NEW["agents"][0])
    assert entries.read("agent", "eve") == NEW["agents"][0]
    recorded = queries.changes(actor="olga").entries
    assert {(entry.via, entry.reason) for entry in recorded} == {("api", "spring")}
    assert len({entry.batch for entry in recorded}) == 1


def test_a_dry_run_reports_the_same_changes_and_writes_nothing(olga: Asking) -> None:
    before, revision = belts.export(), belts.revision()

    dry = olga.put("/belt?dry_run=1", NEW)

    assert (dry.status_code, dry.json()["written"]) == (200, False)
    assert (belts.export(), belts.revision()) == (before, revision)
    assert queries.changes(actor="olga").total == 0
    imported = olga.put("/belt", NEW).json()
    assert imported == {**dry.json(), "written": True}


@pytest.mark.parametrize("query", ["", "?dry_run=1"])
def test_every_problem_is_reported_with_its_path_and_nothing_is_written(olga: Asking, query: str) -> None:
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
    assert [error["path"] for error in answer.json()["errors"]] == [
        "toolkits.new.members[0]",
        "agents.eve.tools_config.raeding",
        "agent",
    ]
    assert belts.export() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agents: [", "This is not YAML"),
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
def test_unsafe_or_invalid_yaml_is_refused(olga: Asking, text: str, message: str) -> None:
    answer = put(olga, text)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert message in answer.json()["detail"]


def test_invalid_utf_8_and_other_media_types_are_refused(olga: Asking) -> None:
    assert olga.put("/belt", b"\xff").status_code == 400
    assert put(olga, "\udcff".encode(errors="surrogateescape"), YAML).status_code == 422  # type: ignore[arg-type]
    assert put(olga, "x", "text/plain").status_code == 415


def test_an_import_with_an_outdated_etag_is_refused(olga: Asking) -> None:
    seen = olga.get("/belt", Accept=YAML)["ETag"]
    switches.override(SETUP, "ada", "clock", False)

    answer = olga.put("/belt", {"agents": [{"key": "eve"}]}, **{"If-Match": seen})

    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    seen = olga.get("/belt")["ETag"]
    assert put(olga, json.dumps({"agents": [{"key": "eve"}]}), **{"If-Match": seen}).status_code == 200


def test_a_change_between_the_etag_check_and_the_import_is_detected(
    olga: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = olga.get("/belt")["ETag"]
    revision = belts.revision

    def read_then_change() -> int:
        number = revision()
        monkeypatch.setattr(belts, "revision", revision)
        switches.override(SETUP, "ada", "clock", False)
        return number

    monkeypatch.setattr(belts, "revision", read_then_change)
    answer = olga.put("/belt", {"agents": [{"key": "eve"}]}, **{"If-Match": seen})
    assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")


def test_importing_and_exporting_require_permissions_for_the_sections(stored: None) -> None:
    mia = Asking(of_operator("mia", "add_agent", "change_agent"))
    assert mia.put("/belt", {"agents": [{"key": "eve"}]}).status_code == 200
    refused = mia.put("/belt?dry_run=1", {"agents": [], "loadouts": [{"name": "day"}]})
    assert refused.status_code == 403
    assert "toolbelt.add_loadout, toolbelt.change_loadout" in refused.json()["detail"]
    assert mia.get("/belt").status_code == 403
    view_permissions = [f"view_{kind}" for kind in ("category", "plugin", "loadout", "subapp")]
    assert Asking(of_operator("ned", *view_permissions)).get("/belt").status_code == 200


def test_what_was_observed_is_neither_exported_nor_imported_nor_set(olga: Asking) -> None:
    models.Plugin.objects.filter(name="kb").update(status="failed")
    exported = olga.get("/belt").json()
    assert "status" not in next(plugin for plugin in exported["plugins"] if plugin["name"] == "kb")

    models.Plugin.objects.filter(name="kb").update(status="ready")
    for plugin in exported["plugins"]:
        plugin["status"] = "failed"
    result = olga.put("/belt?dry_run=1", exported).json()
    assert result["differences"] == []
    assert "plugins.kb.status: Ignored: this is observed here, not imported." in result["warnings"]

    refused = olga.patch("/plugins/kb", {"changes": {"status": "failed"}})
    assert refused.status_code == 422
    assert "plugins.kb.status" in refused.content.decode()
    assert olga.post("/plugins", {"name": "new", "status": "failed"}).status_code == 422


def test_the_configuration_of_an_earlier_moment_is_a_belt_with_what_is_uncertain(olga: Asking) -> None:
    earlier, before = queries.changes(size=1).entries[0].id, belts.export()
    entries.change(SETUP.replace(confirm=True), "toolkit", "reading", {"policy": "Read first."})
    switches.flip(SETUP.replace(confirm=True), "ada", "reading", False)
    was = olga.get(f"/belt/past?at={earlier}").json()
    assert was == {
        "change": earlier,
        "belt": before,
        "gaps": [],
        "uncertain_catalog": False,
        "uncertain_agents": [],
    }
    models.ToolkitSwitch.objects.filter(agent__key="ada", toolkit__key="reading").update(on=True)
    was = olga.get(f"/belt/past?at={earlier}").json()
    assert (was["belt"], was["uncertain_agents"]) == (before, ["ada"])
    assert was["gaps"] == [{"kind": "agent", "name": "ada", "field": "reading"}]


@pytest.mark.parametrize(("at", "status"), [("soon", 422), ("", 422), ("99999999", 404), ("9" * 30, 404)])
def test_a_moment_that_is_none_is_refused(olga: Asking, at: str, status: int) -> None:
    assert olga.get(f"/belt/past?at={at}").status_code == status


def test_the_past_requires_the_permissions_of_an_export(stored: None) -> None:
    assert Asking(of_operator("mia", "change_agent")).get("/belt/past?at=1").status_code == 403
