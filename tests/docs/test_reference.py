"""Tests that the reference is complete; the failing test lists what a page lacks."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import pydantic
import pytest
from django.core import management

from tests.docs import pages
from toolbelt import conf, formats
from toolbelt.control import writing
from toolbelt.core import belts, errors, facts, loading, outcomes, surface
from toolbelt.core.belts import vocabulary
from toolbelt.core.rules import reasons
from toolbelt.web.kit import audit_words

TOOLBELT = pages.ROOT / "toolbelt"
COMMANDS = sorted(file.stem for file in (TOOLBELT / "management/commands").glob("[a-z]*.py"))


def missing(page: str, names: Iterable[str]) -> list[str]:
    """Return the names that the page does not format as code."""
    terms = pages.terms(pages.REFERENCE / page)
    return sorted(set(names) - terms)


def test_every_setting_is_documented() -> None:
    assert missing("settings.md", [f"TOOLBELT_{name}" for name in conf.SETTINGS]) == []


def test_every_setting_is_documented_with_its_default() -> None:
    page = (pages.REFERENCE / "settings.md").read_text(encoding="utf-8")
    for name, setting in conf.SETTINGS.items():
        section = page.partition(f"`TOOLBELT_{name}`")[2].partition("\n## ")[0]
        if isinstance(setting.default, Mapping):
            expected = [f"| `{key}` | `{value}` |" for key, value in setting.default.items()]
        elif isinstance(setting.default, bool):
            expected = [f"`{str(setting.default).lower()}`"]
        else:
            is_list = isinstance(setting.default, tuple)
            shown = ", ".join(setting.default) if is_list else setting.default
            expected = [f"`{shown}`" if shown != "" else "empty"]
        assert [text for text in expected if text not in section] == [], name


def test_every_environment_variable_is_documented() -> None:
    example = (pages.ROOT / ".env.example").read_text(encoding="utf-8")
    variables = set(re.findall(r"^(?:# )?([A-Z][A-Z_]+)=", example, re.MULTILINE))
    for file in [*(TOOLBELT / "settings").glob("*.py"), *(pages.ROOT / "scripts").glob("*")]:
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            variables |= set(re.findall(r"""env(?:\.\w+)?\(\s*"([A-Z_]+)\"""", text))
            variables |= set(re.findall(r"""environ(?:\.get\(|\[)"([A-Z_]+)\"""", text))
            variables |= set(re.findall(r"\$\{([A-Z_]+):-", text))
    assert missing("environment.md", variables) == []


def test_every_command_is_documented() -> None:
    assert missing("commands.md", COMMANDS) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_documented(command: str) -> None:
    own = importlib.import_module(f"toolbelt.management.commands.{command}").Command()
    common = set(management.BaseCommand().create_parser("manage.py", "any")._option_string_actions)
    options = set(own.create_parser("manage.py", command)._option_string_actions) - common
    page = (pages.REFERENCE / "commands.md").read_text(encoding="utf-8")
    section = page.partition(f"## `{command}`")[2].partition("\n## ")[0]
    assert [option for option in sorted(options) if f"`{option}" not in section] == []


def test_every_doctor_finding_is_documented() -> None:
    sources = [
        *TOOLBELT.glob("control/doctor/*.py"),
        TOOLBELT / "management/server_findings.py",
        TOOLBELT / "management/commands/doctor.py",
    ]
    codes = {
        code for file in sources for code in re.findall(r'code="([a-z-]+)"', file.read_text(encoding="utf-8"))
    }
    assert {"disk-space", "server-review", "configuration"} <= codes
    assert missing("commands.md", codes) == []


def test_every_make_target_is_documented() -> None:
    makefile = (pages.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)
    assert targets
    assert missing("commands.md", [f"make {target}" for target in targets]) == []


def test_every_reason_code_is_documented() -> None:
    assert missing("reason-codes.md", reasons.CODES) == []
    assert missing("../semantics.md", reasons.CODES) == []


def test_every_load_status_and_warning_is_documented() -> None:
    statuses = re.findall(r"``(\w+)``", loading.__doc__ or "")
    warnings = re.findall(r'code="([a-z-]+)"', inspect.getsource(surface))
    assert statuses
    assert warnings
    assert missing("reason-codes.md", [*statuses, *warnings]) == []


def test_every_error_and_refusal_is_documented() -> None:
    classes = [
        error
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.ToolbeltError)
    ]
    assert len(classes) > 1
    codes = [error.code for error in classes if error is not errors.ToolbeltError]
    assert missing("errors.md", [*codes, *outcomes.REFUSALS]) == []


def test_every_format_is_documented() -> None:
    assert missing("formats.md", formats.FORMATS) == []
    assert missing("commands.md", formats.FORMATS) == []


def test_every_system_check_is_documented() -> None:
    sources = (file.read_text(encoding="utf-8") for file in TOOLBELT.rglob("*.py"))
    checks = {check for text in sources for check in re.findall(r'"(toolbelt\.[EW]\d{3})"', text)}
    assert checks
    assert missing("errors.md", checks) == []


# Never recorded: tools and plugins are not removed, and a category is only a name, which cannot change.
NEVER = {"tool.remove", "plugin.remove", "category.change", "category.order", "tool.order", "gate_rule.order"}
# The values of the variables that `control` uses in actions.
VALUES = {
    "kind": tuple(belts.KINDS),
    "family": ("switch", "override"),
    "act": ("create", "change"),
    "action": ("",),  # a parameter: the caller passes the text, which is found there
}


def possible_texts(node: ast.expr) -> Iterator[str]:
    """Yield every text that an expression can evaluate to; raise KeyError for a variable not in VALUES."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Constant(value=None):
            yield ""
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield from VALUES[name]
        case ast.FormattedValue(value=inner):
            yield from possible_texts(inner)
        case ast.IfExp(body=first, orelse=second) | ast.BoolOp(values=[first, second]):
            yield from itertools.chain(possible_texts(first), possible_texts(second))
        case ast.Call(func=ast.Name(id="_action")):
            # What a change is called if its caller does not name it.
            yield from (*facts.ACTIONS, "tool.retire", "tool.restore")
            yield from (f"{kind}.{act}" for kind in VALUES["kind"] for act in VALUES["act"])
        case ast.JoinedStr(values=parts):
            yield from map("".join, itertools.product(*(list(possible_texts(part)) for part in parts)))
        case _:
            raise AssertionError(f"an action that this test cannot read: {ast.unparse(node)}")


def actions() -> set[str]:
    """Return every action that `toolbelt.control` can record."""
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in (TOOLBELT / "control").rglob("*.py")]
    calls_ = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    given = (
        possible_texts(keyword.value)
        for call in calls_
        for keyword in call.keywords
        if keyword.arg == "action"
    )
    return {action for texts in given for action in texts if action} - NEVER


def test_every_audit_action_is_documented() -> None:
    recorded = actions()
    assert {"switch.set", "override.clear", "agent.equip", "tool.create", "loadout.remove"} <= recorded
    assert missing("audit-actions.md", recorded) == []


def test_every_audit_action_has_a_verb() -> None:
    ends = {"block.end", "draft.end"}
    unnamed = [
        action
        for action in sorted(actions() - ends - set(audit_words.ACTIONS))
        for family, _, operation in (action.partition("."),)
        if operation not in audit_words.VERBS and family not in audit_words.FLIPS
    ]
    assert unnamed == []


def test_every_source_in_the_audit_log_is_documented() -> None:
    assert missing("audit-actions.md", get_args(writing.Via)) == []


def keys_of(schema: Any) -> Iterator[str]:
    """Yield the name of every property in a JSON Schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        for inner in schema.values():
            yield from keys_of(inner)


@pytest.mark.parametrize("kind", belts.KINDS)
def test_every_key_of_a_belt_is_documented(kind: belts.KindName) -> None:
    entry = vocabulary.KINDS[kind]
    page = (pages.REFERENCE / "belt.md").read_text(encoding="utf-8")
    section = page.partition(f"## `{entry.section}`")[2].partition("\n## ")[0]
    assert section
    keys = {*keys_of(pydantic.TypeAdapter(entry.model).json_schema())}
    assert [key for key in sorted(keys) if f"`{key}`" not in section] == []
