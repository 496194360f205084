"""Tests that the reference is complete; what a page lacks is named by the test that fails."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import pytest
from django.core import management

from tests.docs import pages
from toolbelt import adapters, conf
from toolbelt.control import actors
from toolbelt.core import belts, calls, errors, loading, reasons, surface
from toolbelt.core.belts import vocabulary

TOOLBELT = pages.ROOT / "toolbelt"
COMMANDS = sorted(file.stem for file in (TOOLBELT / "management/commands").glob("[a-z]*.py"))


def missing(page: str, names: Iterable[str]) -> list[str]:
    """List those of the names that the page does not set as code."""
    terms = pages.terms(pages.REFERENCE / page)
    return sorted(set(names) - terms)


def test_every_setting_has_its_place() -> None:
    assert missing("settings.md", [f"TOOLBELT_{setting.name}" for setting in conf.SETTINGS]) == []


def test_every_setting_stands_with_its_default() -> None:
    page = (pages.REFERENCE / "settings.md").read_text(encoding="utf-8")
    for setting in conf.SETTINGS:
        section = page.partition(f"`TOOLBELT_{setting.name}`")[2].partition("\n## ")[0]
        if isinstance(setting.default, Mapping):
            wanted = [f"| `{key}` | `{value}` |" for key, value in setting.default.items()]
        elif isinstance(setting.default, bool):
            wanted = [f"`{str(setting.default).lower()}`"]
        else:
            several = isinstance(setting.default, tuple)
            shown = ", ".join(setting.default) if several else setting.default
            wanted = [f"`{shown}`" if shown != "" else "empty"]
        assert [text for text in wanted if text not in section] == [], setting.name


def test_every_environment_variable_has_its_place() -> None:
    example = (pages.ROOT / ".env.example").read_text(encoding="utf-8")
    variables = set(re.findall(r"^(?:# )?([A-Z][A-Z_]+)=", example, re.MULTILINE))
    for file in [*(TOOLBELT / "settings").glob("*.py"), *(pages.ROOT / "scripts").glob("*")]:
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            variables |= set(re.findall(r"""env(?:\.\w+)?\(\s*"([A-Z_]+)\"""", text))
            variables |= set(re.findall(r"""environ(?:\.get\(|\[)"([A-Z_]+)\"""", text))
            variables |= set(re.findall(r"\$\{([A-Z_]+):-", text))
    assert missing("environment.md", variables) == []


def test_every_command_has_its_place() -> None:
    assert missing("commands.md", COMMANDS) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_has_its_place(command: str) -> None:
    own = importlib.import_module(f"toolbelt.management.commands.{command}").Command()
    common = set(management.BaseCommand().create_parser("manage.py", "any")._option_string_actions)
    options = set(own.create_parser("manage.py", command)._option_string_actions) - common
    page = (pages.REFERENCE / "commands.md").read_text(encoding="utf-8")
    section = page.partition(f"## `{command}`")[2].partition("\n## ")[0]
    assert [option for option in sorted(options) if f"`{option}" not in section] == []


def test_every_finding_of_doctor_has_its_place() -> None:
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


def test_every_make_target_has_its_place() -> None:
    makefile = (pages.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)
    assert targets
    assert missing("commands.md", [f"make {target}" for target in targets]) == []


def test_every_reason_code_has_its_place() -> None:
    assert missing("reason-codes.md", reasons.CODES) == []
    assert missing("../semantics.md", reasons.CODES) == []


def test_every_status_of_a_load_and_every_warning_has_its_place() -> None:
    statuses = re.findall(r"``(\w+)``", loading.__doc__ or "")
    warnings = re.findall(r'code="([a-z-]+)"', inspect.getsource(surface))
    assert statuses
    assert warnings
    assert missing("reason-codes.md", [*statuses, *warnings]) == []


def test_every_error_and_refusal_has_its_place() -> None:
    classes = [
        one
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, errors.ToolbeltError)
    ]
    assert len(classes) > 1
    codes = [one.code for one in classes if one is not errors.ToolbeltError]
    assert missing("errors.md", [*codes, *calls.REFUSALS]) == []


def test_every_format_has_its_place() -> None:
    assert missing("formats.md", adapters.FORMATS) == []
    assert missing("commands.md", adapters.FORMATS) == []


def test_every_system_check_has_its_place() -> None:
    sources = (file.read_text(encoding="utf-8") for file in TOOLBELT.rglob("*.py"))
    checks = {check for text in sources for check in re.findall(r'"(toolbelt\.[EW]\d{3})"', text)}
    assert checks
    assert missing("errors.md", checks) == []


# Nothing ever records these: tools and plugins are not removed, and a category is a name, which cannot change.
NEVER = {"tool.remove", "plugin.remove", "category.change", "category.order", "tool.order"}
# What stands in place of a name in an action, as `control` writes it.
MEANINGS = {
    "kind": tuple(belts.KINDS),
    "family": ("switch", "override"),
    "act": ("create", "change"),
    "action": ("",),  # handed on: its words stand where it is handed over
}


def said(node: ast.expr) -> Iterator[str]:
    """Return every text that an expression can become; a name that has no meaning above is for a person to look at."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Constant(value=None):
            yield ""
        case ast.Name(id=known):
            yield from MEANINGS[known]
        case ast.FormattedValue(value=inner):
            yield from said(inner)
        case ast.IfExp(body=one, orelse=other) | ast.BoolOp(values=[one, other]):
            yield from itertools.chain(said(one), said(other))
        case ast.JoinedStr(values=parts):
            yield from map("".join, itertools.product(*(list(said(part)) for part in parts)))
        case _:
            raise AssertionError(f"an action that this test cannot read: {ast.unparse(node)}")


def actions() -> set[str]:
    """Name every action that the operators' door can record."""
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in (TOOLBELT / "control").rglob("*.py")]
    calls_ = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    given = (said(keyword.value) for call in calls_ for keyword in call.keywords if keyword.arg == "action")
    return {action for texts in given for action in texts if action} - NEVER


def test_every_audit_action_has_its_place() -> None:
    found = actions()
    assert {"switch.set", "override.clear", "agent.equip", "tool.create", "loadout.remove"} <= found
    assert missing("audit-actions.md", found) == []


def test_every_shell_that_the_audit_names_has_its_place() -> None:
    assert missing("audit-actions.md", get_args(actors.Via)) == []


def keys_of(shape: Any) -> Iterator[str]:
    """Name every field of a shape, and of the shapes within it."""
    for name, inner in getattr(shape, "fields", {}).items():
        yield name
        yield from keys_of(inner)
    for inner in (getattr(shape, "item", None), getattr(shape, "value", None)):
        if inner is not None:
            yield from keys_of(inner)


@pytest.mark.parametrize("kind", belts.KINDS)
def test_every_key_of_a_belt_has_its_place(kind: belts.KindName) -> None:
    spoken = vocabulary.KINDS[kind]
    page = (pages.REFERENCE / "belt.md").read_text(encoding="utf-8")
    section = page.partition(f"## `{spoken.section}`")[2].partition("\n## ")[0]
    assert section
    keys = {*keys_of(spoken.shape)}
    assert [key for key in sorted(keys) if f"`{key}`" not in section] == []
