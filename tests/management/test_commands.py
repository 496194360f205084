"""Tests of the commands `surface`, `why`, `belt` and `try`: their output and their errors."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests import fast_fixtures
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.store import snapshots

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
    fast_fixtures.stored("commands", lambda: belts.import_(writing.by("olive", via="command"), BELT))


def run(*args: str) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out)
    return out.getvalue()


@pytest.mark.usefixtures("stored")
def test_surface_prints_tools_policy_and_directive() -> None:
    text = run("surface", "ada", "--message", "what time is it?")

    assert "ada: 1 tool," in text
    assert "clock" in text
    assert '<toolkit name="desk">\nUse clock.\n</toolkit>' in text
    assert "focus on clock" in text


@pytest.mark.usefixtures("stored")
def test_surface_prints_the_wire_document_as_json() -> None:
    document = json.loads(run("surface", "ada", "--format", "json"))

    assert document["active_tools"] == ["clock"]
    assert document["fingerprint"].startswith("sha256:")


@pytest.mark.usefixtures("stored")
def test_surface_prints_the_request_for_a_providers_sdk() -> None:
    request = json.loads(run("surface", "ada", "--format", "anthropic"))

    assert [tool["name"] for tool in request["tools"]] == ["clock"]
    assert request["tool_choice"] == {"type": "auto"}


@pytest.mark.django_db
def test_surface_refuses_a_schema_that_the_provider_does_not_support() -> None:
    choice = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    belt = {"tools": [{"key": "odd", "input_schema": choice, "default_on": True}], "agents": [{"key": "ada"}]}
    belts.import_(writing.by("olive", via="command"), belt)

    with pytest.raises(CommandError, match=r"tools\.odd\.input_schema: Gemini does not support this schema"):
        run("surface", "ada", "--format", "gemini")


@pytest.mark.usefixtures("stored")
def test_why_prints_one_line_and_every_rule_with_trace() -> None:
    assert run("why", "ada", "calc") == "calc  denied  override-off: its override is off\n"

    traced = run("why", "ada", "calc", "--trace").splitlines()
    assert len(traced) == 12
    assert [line for line in traced if line.startswith(">")] == [
        ">  4. Is its override off?  yes: denied, override-off (override calc)"
    ]


@pytest.mark.usefixtures("stored")
def test_why_says_what_gate_rules_say_to_a_call() -> None:
    rules = [
        {"key": "late", "effect": "deny", "tools": ["clock"], "when": {"hour": {"minimum": 18}}},
        {"key": "watch", "effect": "deny", "observed": True},
        {"key": "other", "effect": "deny", "tools": ["calc"]},
    ]
    belts.import_(writing.by("olive", via="command"), {"gate_rules": rules})

    assert run("why", "ada", "clock", "--trace").splitlines()[13:] == [
        "At the gate:",
        "  late: denies when hour ≥ 18  depends on hour",
        "  watch: would deny  applies",
    ]
    for given, answer in (("19", "applies"), ("9", "does not apply")):
        assert f"hour ≥ 18  {answer}\n" in run("why", "ada", "clock", "--arguments", f'{{"hour": {given}}}')
    unknown = run("why", "ada", "clock", "--arguments", '{"hour": "19"}')
    assert "hour ≥ 18  cannot be known for these arguments, so it applies\n" in unknown
    for wrong in ("[]", "{", '{"a": 1, "a": 2}', '{"a": NaN}'):
        with pytest.raises(CommandError, match="The arguments"):
            run("why", "ada", "clock", "--arguments", wrong)


@pytest.mark.usefixtures("stored")
def test_why_says_that_no_rule_concerns_a_call_and_why_its_arguments_do_not_fit() -> None:
    schema = {"type": "object", "properties": {"hour": {"type": "integer"}}}
    belts.import_(writing.by("olive", via="command"), {"tools": [{"key": "clock", "input_schema": schema}]})

    text = run("why", "ada", "clock", "--arguments", '{"hour": "x"}')

    assert "The arguments do not fit the tool:\n  hour: 'x' is not of type 'integer'" in text
    assert text.endswith("At the gate: no rule concerns calls of this tool.\n")


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("args", [("surface", "adda"), ("why", "ada", "clok"), ("why", "adda", "clock")])
def test_an_unknown_name_is_reported_with_the_nearest_name(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"Did you mean (ada|clock)\?"):
        run(*args)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_an_exported_belt_is_imported_unchanged(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"belt.{ending}"
    assert run("belt", "export", str(file)) == f"Wrote {file} (4 entries).\n"

    assert run("belt", "import", str(file)) == "0 created, 0 changed, 4 unchanged.\n"


@pytest.mark.usefixtures("stored")
def test_an_export_has_the_configuration_of_an_earlier_moment() -> None:
    before, earlier = run("belt", "export"), str(models.AuditEntry.objects.latest("id").pk)
    changed = {"tools": [{"key": "late"}], "agents": [{"key": "ada", "role": "Other"}]}
    belts.import_(writing.by("olive", via="command"), changed)
    assert run("belt", "export") != before
    assert run("belt", "export", "--at", earlier) == before
    models.Agent.objects.filter(key="ada").update(role="Third")
    err = io.StringIO()
    call_command("belt", "export", "--at", earlier, stdout=io.StringIO(), stderr=err)
    assert err.getvalue().splitlines() == [
        "Uncertain: role of agent ada is not as the audit log has it.",
        "Uncertain: written without the audit log since: agents ada.",
    ]
    with pytest.raises(CommandError, match="--at or --decisions"):
        run("belt", "export", "--at", earlier, "--decisions")
    with pytest.raises(CommandError, match="no change named"):
        run("belt", "export", "--at", "99999")
    with pytest.raises(CommandError, match="'soon' is not a time"):
        run("belt", "export", "--at", "soon")


@pytest.mark.usefixtures("stored")
def test_an_export_overwrites_a_file_only_with_the_option(tmp_path: Path) -> None:
    file = tmp_path / "belt.yaml"
    file.write_text("mine")
    with pytest.raises(CommandError, match=r"belt\.yaml exists already.*--replace"):
        run("belt", "export", str(file))
    assert file.read_text() == "mine"
    assert run("belt", "export", str(file), "--replace").startswith("Wrote ")


@pytest.mark.usefixtures("stored")
def test_an_invalid_belt_is_refused_with_every_problem(tmp_path: Path) -> None:
    file = tmp_path / "belt.yaml"
    file.write_text("agents: [{key: eve, loadout: ghost, kind: spy}]")

    for action in ("check", "import"):
        with pytest.raises(CommandError) as refused:
            run("belt", action, str(file))
        assert "agents.eve.loadout" in str(refused.value)
        assert "agents.eve.kind" in str(refused.value)


@pytest.mark.usefixtures("stored")
def test_a_dry_run_of_an_import_prints_its_effect_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "belt.yaml"
    file.write_text(
        "toolkits: [{key: desk, title: Desk, members: [clock], policy: Look at the clock.}]\n"
        "agents:\n"
        "- {key: ada, tools: [calc]}\n"
        "- {key: eve, tools_config: {desk: true}}\n"
        "loadouts: [{name: strict, disabled: [clokc]}]\n"
    )
    before = belts.export()
    tool_tokens = {tool.key: tool.tokens for tool in snapshots.catalog().tools.values()}
    count_tokens = snapshots.catalog().count_tokens or len

    printed = run("belt", "import", str(file), "--dry-run")

    assert belts.export() == before
    tokens_before = tool_tokens["clock"] + count_tokens('<toolkit name="desk">\nUse clock.\n</toolkit>')
    tokens_after = tool_tokens["clock"] + count_tokens(
        '<toolkit name="desk">\nLook at the clock.\n</toolkit>'
    )
    assert printed.splitlines() == [
        "2 to create, 2 to change, 0 unchanged.",
        f"ada: 1 → 1 tools, {tokens_before} → {tool_tokens['calc']} tokens",
        "  gains calc",
        "  loses clock",
        "  Warning: Enables tools that do not state their risk: calc.",
        f"eve (new): 0 → 1 tools, 0 → {tokens_after} tokens",
        "  gains clock",
        "  Warning: Enables tools that do not state their risk: clock.",
        "toolkits:",
        "  desk (changed)",
        '    members: ["clock", "calc"] → ["clock"]',
        '    policy: "Use {active_tools}." → "Look at the clock."',
        '    triggers: [{"name": "time", "any": ["what time"], "focus": ["clock"]}] → not set',
        '    title: not set → "Desk"',
        "loadouts:",
        "  strict (new)",
        '    disabled: ["clokc"]',
        "agents:",
        "  ada (changed)",
        '    tools_config: {"calc": false, "desk": true} → not set',
        '    tools: not set → ["calc"]',
        "  eve (new)",
        '    tools_config: {"desk": true}',
        "To confirm, with --confirm: There is no plugin or tool named 'clokc'. Did you mean clock or calc? It disables"
        " nothing until one has this name.",
        "To be reset to defaults, because the belt leaves them out:",
        "  toolkits.desk: triggers",
        "  agents.ada: tools_config",
        "Nothing was changed.",
    ]


@pytest.mark.usefixtures("stored")
def test_an_import_prints_its_effect_on_agents_and_the_fields_that_it_reset(tmp_path: Path) -> None:
    file = tmp_path / "belt.yaml"
    file.write_text(
        "toolkits: [{key: desk, members: [clock, calc], policy: 'Use {active_tools}.', title: Desk}]\n"
        "agents: [{key: ada, title: Ada, tools_config: {calc: false}}]\n"
    )

    printed = run("belt", "import", str(file)).splitlines()

    assert printed[0] == "0 created, 2 changed, 0 unchanged."
    assert re.fullmatch(r"ada: 1 → 0 tools, \d+ → 0 tokens", printed[1])
    assert printed[2:] == [
        "  loses clock",
        "Reset to defaults, because the belt leaves them out:",
        "  toolkits.desk: triggers",
        "  agents.ada: tools_config.desk",
    ]
    assert run("belt", "import", str(file)) == "0 created, 0 changed, 2 unchanged.\n"


@pytest.mark.usefixtures("stored")
def test_an_import_of_many_tools_names_some_of_them(tmp_path: Path) -> None:
    tools = [
        {"key": f"t{number:02}", "description": "A tool.", "annotations": {"readOnlyHint": True}}
        for number in range(15)
    ]
    file = tmp_path / "belt.json"
    file.write_text(
        json.dumps({"tools": tools, "agents": [{"key": "eve", "tools": [tool["key"] for tool in tools]}]})
    )

    printed = run("belt", "import", str(file))

    assert "  gains t00, t01, t02, t03, t04, t05, t06, t07, t08, t09 and 5 more\n" in printed


@pytest.mark.usefixtures("stored")
def test_a_dry_run_refuses_an_invalid_belt(tmp_path: Path) -> None:
    file = tmp_path / "belt.yaml"
    file.write_text("agents: [{key: eve, loadout: ghost}]")
    with pytest.raises(CommandError, match=r"agents\.eve\.loadout"):
        run("belt", "import", str(file), "--dry-run")


def scenario_file(tmp_path: Path, active: list[str]) -> Path:
    file = tmp_path / "own.json"
    step = {"surface": {"agent": "ada"}, "expect": {"active": active}}
    file.write_text(json.dumps([{"id": "desk", "belt": BELT, "steps": [step]}]))
    return file


def test_try_counts_passed_scenarios_without_a_database(tmp_path: Path) -> None:
    assert run("try", str(scenario_file(tmp_path, ["clock"]))) == "1 passed, 0 failed\n"
    assert run("try", str(tmp_path)) == "1 passed, 0 failed\n"


def test_try_prints_each_failure_and_exits_1(tmp_path: Path) -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("try", str(scenario_file(tmp_path, ["calc"])), stdout=out)

    assert ended.value.code == 1
    assert out.getvalue() == "desk: step 1: expected active = ['calc'], got ['clock']\n0 passed, 1 failed\n"


def failed_try(path: Path) -> str:
    stderr = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("try", str(path), stderr=stderr)
    assert ended.value.code == 2
    return stderr.getvalue()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", b"{", "This cannot be read: Expecting property name"),
        ("a.json", b"", "This cannot be read: Expecting value"),
        ("a.json", b"{}", "A scenario file is a list of scenarios."),
        ("a.json", b"[1]", "A scenario file is a list of scenarios."),
        ("a.json", b"[]", "The file contains no scenarios."),
        ("a.json", b'[{"id": "x", "id": "y"}]', "the key 'id' is repeated in one mapping"),
        ("a.json", b"[" * 100_000, "This cannot be read: "),
        ("a.json", b"[" + b"9" * 5000 + b"]", "This cannot be read: "),
        ("a.json", b'[{"id": "\xe9"}]', "it is not UTF-8"),
        ("a.yaml", b"", "A scenario file is a list of scenarios."),
        ("a.yaml", b"- id: [x\n", "(line 2, column 1)"),
        ("a.yaml", b"- id: x\n  id: y\n", "the key 'id' is repeated in one mapping (line 2, column 3)"),
        ("a.yaml", b"- note: 2031-13-45\n", "month must be in 1..12"),
        ("a.yaml", b"- !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
    ],
)
def test_try_exits_2_for_a_file_without_scenarios(
    tmp_path: Path, name: str, text: bytes, message: str
) -> None:
    file = tmp_path / name
    file.write_bytes(text)
    printed = failed_try(file)
    assert printed.startswith(f"{file}: ")
    assert message in printed


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("check", "cannot be read: No such file or directory."),
        ("import", "cannot be read: No such file or directory."),
        ("export", "cannot be written: No such file or directory."),
    ],
)
@pytest.mark.django_db
def test_a_belt_file_that_cannot_be_opened_is_named_once(tmp_path: Path, action: str, message: str) -> None:
    file = tmp_path / "nowhere" / "ghost.yaml"
    with pytest.raises(CommandError, match=f"^{re.escape(f'{file}: {message}')}$"):
        call_command("belt", action, str(file))


def test_a_belt_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"tools: [{key: \xe9}]")
    with pytest.raises(CommandError, match="it is not UTF-8"):
        call_command("belt", "check", str(file))


def test_try_exits_2_if_there_is_no_file(tmp_path: Path) -> None:
    assert "No such file or directory" in failed_try(tmp_path / "ghost.json")
    (tmp_path / "folder.json").mkdir()
    assert "this directory has no .json or .yaml files" in failed_try(tmp_path)


def test_try_runs_nothing_if_one_of_the_files_cannot_be_read(tmp_path: Path) -> None:
    scenario_file(tmp_path, ["clock"])
    (tmp_path / "zz.yml").write_text("- [")
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("try", str(tmp_path), stdout=out, stderr=io.StringIO())
    assert out.getvalue() == ""


def test_try_reports_an_id_that_is_repeated_in_a_file(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, ["clock"])
    file.write_text(json.dumps(json.loads(file.read_text()) * 2))
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("try", str(file), stdout=out)
    assert ended.value.code == 1
    failure = "desk: belt: expected an id of its own, got one that 2 scenarios of this file have\n"
    assert out.getvalue() == failure * 2 + "0 passed, 2 failed\n"


def test_try_escapes_control_characters_in_failures(tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps([{"id": "a\nb\x1b[2J\ud800 é", "belt": {}}]))
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("try", str(file), stdout=out)
    failure, summary = out.getvalue().splitlines()
    assert failure.startswith(r"a\nb\x1b[2J\ud800 é: belt: expected an expectation")
    assert summary == "0 passed, 1 failed"


@pytest.mark.parametrize(
    ("belt", "limit"),
    [
        ("[" * 3000 + "]" * 3000, "nested more than 80 levels deep"),
        ("{tools: *again}", "the alias 'again' is inside the value that it names"),
    ],
)
def test_try_refuses_a_file_beyond_the_limits_by_their_names(tmp_path: Path, belt: str, limit: str) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text(f"- &again {{id: deep, belt: {belt}}}")
    err = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("try", str(file), stdout=io.StringIO(), stderr=err)
    assert ended.value.code == 2
    assert limit in err.getvalue()


def test_try_evaluates_any_yaml_value_as_a_belt(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("- id: odd\n  belt: {2031-01-01: x}\n  expect_error: {path: nowhere}\n")
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("try", str(file), stdout=out)
    assert ended.value.code == 1
    assert out.getvalue().startswith("odd: belt: expected an error at nowhere, got ")


def test_try_reads_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, ["clock"])
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert run("try", str(file.rename(tmp_path / "DESK.JSON"))) == "1 passed, 0 failed\n"


@pytest.mark.usefixtures("stored")
def test_a_belt_exported_while_a_server_was_down_takes_no_tool_away(tmp_path: Path) -> None:
    belts.import_(
        writing.by("olive", via="command"),
        {
            "plugins": [
                {"name": "slow", "namespace": "slow", "upstream": {"url": "https://slow.example/mcp"}}
            ],
            "tools": [{"key": "slow__nap", "plugin": "slow"}],
            "agents": [{"key": "ada", "tools": ["slow__nap"]}],
        },
    )
    file = tmp_path / "nightly.yaml"
    models.Plugin.objects.filter(name="slow").update(status="failed")
    run("belt", "export", str(file))
    models.Plugin.objects.filter(name="slow").update(status="ready")

    printed = run("belt", "import", str(file), "--dry-run")

    assert "status" not in file.read_text()
    assert "0 to create, 0 to change" in printed
    file.write_text("plugins: [{name: slow, namespace: slow, status: failed}]\n")
    warnings = io.StringIO()
    call_command("belt", "check", str(file), stdout=io.StringIO(), stderr=warnings)
    assert "plugins.slow.status: Ignored" in warnings.getvalue()
