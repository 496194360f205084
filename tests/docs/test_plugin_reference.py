"""Tests that the pages on plugins are complete."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

import toolbelt
from tests.docs import pages
from toolbelt.core import errors
from toolbelt.plugins import builtin, contract, plugins_file

CONTRACT = pages.REFERENCE / "plugin-contract.md"
BUILT_IN = pages.ROOT / "docs/how-to/use-built-in-toolkits.md"
# Where a built-in plugin's settings are read, for those that have any.
SETTINGS = {
    "files": "settings.Settings",
    "memory": "notes.Limits",
    "self_evolution": "settings.Settings",
    "web": "settings.Settings",
}
CLASSES = sorted(
    name
    for name, one in vars(contract).items()
    if inspect.isclass(one)
    and one.__module__ == contract.__name__
    and not name.startswith("_")
    and not issubclass(one, Exception)
)


OF_PLUGINS = [name for name in toolbelt.__all__ if toolbelt._HOMES[name].startswith("plugins.")]


def section(page: str, heading: str) -> str:
    """Return what stands below a heading of the second level."""
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def members(known: type) -> Iterator[str]:
    """Name what a class has of its own that is public."""
    found = {*vars(known), *vars(known).get("__annotations__", {})}
    yield from sorted(name for name in found if not name.startswith("_"))


def is_told(name: str, text: str) -> bool:
    """Return whether the text sets the name as code, alone or as a call of it."""
    return re.search(rf"`(?:await )?{name}(?:\(|`)", text) is not None


def test_everything_that_toolbelt_hands_to_plugins_stands_in_the_contracts_page() -> None:
    text = CONTRACT.read_text(encoding="utf-8")
    raised = section(text, "Errors")
    assert [name for name in OF_PLUGINS if not section(text, f"`{name}`") and not is_told(name, raised)] == []


@pytest.mark.parametrize("name", [*CLASSES, "ToolPluginRegistry"])
def test_every_member_of_the_contract_stands_in_its_section(name: str) -> None:
    known = getattr(contract, name, None) or getattr(toolbelt, name)
    text = section(CONTRACT.read_text(encoding="utf-8"), f"`{name}`")
    assert text
    assert [member for member in members(known) if not is_told(member, text)] == []


@pytest.mark.parametrize("name", ["tool", "FunctionPlugin", "LocalRuntime"])
def test_every_argument_stands_in_its_section(name: str) -> None:
    text = section(CONTRACT.read_text(encoding="utf-8"), f"`{name}`")
    # `tool` also takes the function itself, without a word for it.
    taken = inspect.signature(getattr(toolbelt, name)).parameters.keys() - {"function"}
    assert taken
    assert [argument for argument in sorted(taken) if not re.search(rf"\b{argument}\b", text)] == []


def test_every_error_of_the_contract_stands_with_its_code() -> None:
    text = section(CONTRACT.read_text(encoding="utf-8"), "Errors")
    found = [
        one
        for one in vars(contract).values()
        if isinstance(one, type) and issubclass(one, errors.ToolbeltError)
    ]
    assert found
    assert [one.__name__ for one in found if f"| `{one.__name__}` | `{one.code}` |" not in text] == []


def test_every_key_of_the_plugins_file_has_its_place() -> None:
    text = (pages.REFERENCE / "plugins-file.md").read_text(encoding="utf-8")
    assert [key for key in plugins_file.FIELDS if f"| `{key}` |" not in text] == []
    assert f"`{plugins_file.SECTION}`" in text


@pytest.mark.parametrize("name", sorted(builtin.CLASSES))
def test_every_built_in_plugin_is_told_of_with_its_tools_toolkits_and_settings(name: str) -> None:
    page = BUILT_IN.read_text(encoding="utf-8")
    module, class_name = builtin.CLASSES[name]
    plugin = getattr(importlib.import_module(module), class_name)()
    text = section(page, name)
    assert [tool.name for tool in plugin.tools if f"`{tool.name}`" not in text] == []
    assert [toolkit.key for toolkit in plugin.toolkits if f"`{toolkit.key}`" not in page] == []
    if name in SETTINGS:
        home, _, known = SETTINGS[name].partition(".")
        read = getattr(importlib.import_module(f"{module.rpartition('.')[0]}.{home}"), known)
        assert is_dataclass(read)
        assert [one.name for one in fields(read) if f"| `{one.name}` |" not in text] == []
    else:
        assert "No configuration." in text
