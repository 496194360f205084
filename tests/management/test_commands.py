"""Do the commands print what an operator needs, and refuse with a sentence?"""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from toolbelt.control import actors, belts

BELT: dict[str, Any] = {
    "tools": [
        {"key": "clock", "description": "Tell the time."},
        {"key": "calc", "description": "Calculate."},
    ],
    "toolkits": [
        {
            "key": "desk",
            "members": ["clock", "calc"],
            "policy": "Use {active_tools}.",
            "triggers": [{"name": "time", "any": ["what time"], "focus": ["clock"]}],
        }
    ],
    "agents": [{"key": "ada", "tools_config": {"desk": True, "calc": False}}],
}


@pytest.fixture
def stored(db: None) -> None:
    belts.import_(actors.Actor(name="olive", via="command"), BELT)


def run(*args: str) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out)
    return out.getvalue()


@pytest.mark.usefixtures("stored")
def test_surface_prints_tools_policy_and_directive() -> None:
    text = run("surface", "ada", "--message", "what time is it?")

    assert "ada: 1 tools" in text
    assert "clock" in text
    assert '<toolkit name="desk">\nUse clock.\n</toolkit>' in text
    assert "focus on clock" in text


@pytest.mark.usefixtures("stored")
def test_surface_prints_the_wire_document_as_json() -> None:
    document = json.loads(run("surface", "ada", "--format", "json"))

    assert document["active_tools"] == ["clock"]
    assert document["fingerprint"].startswith("sha256:")


@pytest.mark.usefixtures("stored")
def test_surface_prints_what_a_providers_sdk_is_passed() -> None:
    said = json.loads(run("surface", "ada", "--format", "anthropic"))

    assert [tool["name"] for tool in said["tools"]] == ["clock"]
    assert said["tool_choice"] == {"type": "auto"}


@pytest.mark.django_db
def test_surface_refuses_what_a_provider_does_not_take() -> None:
    choice = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    many = {"tools": [{"key": "odd", "input_schema": choice, "default_on": True}], "agents": [{"key": "ada"}]}
    belts.import_(actors.Actor(name="olive", via="command"), many)

    with pytest.raises(CommandError, match=r"tools\.odd\.input_schema: Gemini does not take this schema"):
        run("surface", "ada", "--format", "gemini")


@pytest.mark.usefixtures("stored")
def test_why_prints_one_line_and_with_trace_every_question() -> None:
    assert run("why", "ada", "calc") == "calc  denied  override-off: its override is off\n"

    traced = run("why", "ada", "calc", "--trace").splitlines()
    assert len(traced) == 12
    assert [line for line in traced if line.startswith(">")] == [
        ">  4. Is its override off?  yes: denied, override-off (override calc)"
    ]


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("args", [("surface", "adda"), ("why", "ada", "clok"), ("why", "adda", "clock")])
def test_an_unknown_name_is_an_error_with_the_nearest(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"Did you mean (ada|clock)\?"):
        run(*args)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_a_belt_goes_out_and_comes_in_as_it_was(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"belt.{ending}"
    run("belt", "export", str(file))

    assert run("belt", "import", str(file)) == "0 created, 0 changed, 4 as they were.\n"


@pytest.mark.usefixtures("stored")
def test_a_belt_that_is_not_sound_is_refused_with_every_problem(tmp_path: Path) -> None:
    file = tmp_path / "belt.yaml"
    file.write_text("agents: [{key: eve, loadout: ghost, kind: spy}]")

    for act in ("check", "import"):
        with pytest.raises(CommandError) as refused:
            run("belt", act, str(file))
        assert "agents.eve.loadout" in str(refused.value)
        assert "agents.eve.kind" in str(refused.value)


def scenario_file(tmp_path: Path, active: list[str]) -> Path:
    file = tmp_path / "own.json"
    step = {"surface": {"agent": "ada"}, "expect": {"active": active}}
    file.write_text(json.dumps([{"id": "desk", "belt": BELT, "steps": [step]}]))
    return file


def test_try_says_how_many_scenarios_hold_without_a_database(tmp_path: Path) -> None:
    assert run("try", str(scenario_file(tmp_path, ["clock"]))) == "1 passed, 0 failed\n"
    assert run("try", str(tmp_path)) == "1 passed, 0 failed\n"


def test_try_prints_each_failure_and_exits_1(tmp_path: Path) -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("try", str(scenario_file(tmp_path, ["calc"])), stdout=out)

    assert ended.value.code == 1
    assert out.getvalue() == "desk: step 1: expected active = ['calc'], got ['clock']\n0 passed, 1 failed\n"


@pytest.mark.parametrize("text", ["{", "{}", "[1]"])
def test_try_exits_2_for_a_file_that_holds_no_scenarios(tmp_path: Path, text: str) -> None:
    file = tmp_path / "broken.json"
    file.write_text(text)
    said = io.StringIO()

    with pytest.raises(SystemExit) as ended:
        call_command("try", str(file), stderr=said)

    assert ended.value.code == 2
    assert "broken.json" in said.getvalue()
