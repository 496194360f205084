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
# The classes that hold the settings of built-in plugins, for those that have settings.
SETTINGS = {
    "files": "settings.Settings",
    "memory": "notes.Limits",
    "self_evolution": "settings.Settings",
    "web": "settings.Settings",
}
CLASSES = sorted(
    name
    for name, value in vars(contract).items()
    if inspect.isclass(value)
    and value.__module__ == contract.__name__
    and not name.startswith("_")
    and not issubclass(value, Exception)
)


PLUGIN_NAMES = [name for name in toolbelt.__all__ if toolbelt._HOMES[name].startswith("plugins.")]


def section(page: str, heading: str) -> str:
    """Return the text below a heading of the second level."""
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def members(class_: type) -> Iterator[str]:
    """Yield the names of the public members that a class defines itself."""
    names = {*vars(class_), *vars(class_).get("__annotations__", {})}
    yield from sorted(name for name in names if not name.startswith("_"))


def is_documented(name: str, text: str) -> bool:
    """Return whether the text formats the name as code, alone or as a call."""
    return re.search(rf"`(?:await )?{name}(?:\(|`)", text) is not None


def test_everything_that_toolbelt_exports_for_plugins_is_documented() -> None:
    text = CONTRACT.read_text(encoding="utf-8")
    raised = section(text, "Errors")
    assert [
        name for name in PLUGIN_NAMES if not section(text, f"`{name}`") and not is_documented(name, raised)
    ] == []


@pytest.mark.parametrize("name", [*CLASSES, "ToolPluginRegistry"])
def test_every_member_of_a_contract_class_is_documented(name: str) -> None:
    class_ = getattr(contract, name, None) or getattr(toolbelt, name)
    text = section(CONTRACT.read_text(encoding="utf-8"), f"`{name}`")
    assert text
    assert [member for member in members(class_) if not is_documented(member, text)] == []


@pytest.mark.parametrize("name", ["tool", "FunctionPlugin", "LocalRuntime"])
def test_every_argument_is_documented(name: str) -> None:
    text = section(CONTRACT.read_text(encoding="utf-8"), f"`{name}`")
    # `tool` also takes the function itself, which needs no documentation.
    taken = inspect.signature(getattr(toolbelt, name)).parameters.keys() - {"function"}
    assert taken
    assert [argument for argument in sorted(taken) if not re.search(rf"\b{argument}\b", text)] == []


def test_every_error_of_the_contract_is_documented_with_its_code() -> None:
    text = section(CONTRACT.read_text(encoding="utf-8"), "Errors")
    classes = [
        error
        for error in vars(contract).values()
        if isinstance(error, type) and issubclass(error, errors.ToolbeltError)
    ]
    assert classes
    assert [
        error.__name__ for error in classes if f"| `{error.__name__}` | `{error.code}` |" not in text
    ] == []


def test_every_key_of_the_plugins_file_is_documented() -> None:
    text = (pages.REFERENCE / "plugins-file.md").read_text(encoding="utf-8")
    assert [key for key in plugins_file.FIELDS if f"| `{key}` |" not in text] == []
    assert f"`{plugins_file.SECTION}`" in text


@pytest.mark.parametrize("name", sorted(builtin.CLASSES))
def test_every_built_in_plugin_is_documented_with_its_tools_and_settings(name: str) -> None:
    page = BUILT_IN.read_text(encoding="utf-8")
    module, class_name = builtin.CLASSES[name]
    plugin = getattr(importlib.import_module(module), class_name)()
    text = section(page, name)
    assert [tool.name for tool in plugin.tools if f"`{tool.name}`" not in text] == []
    assert [toolkit.key for toolkit in plugin.toolkits if f"`{toolkit.key}`" not in page] == []
    if name in SETTINGS:
        home, _, known = SETTINGS[name].partition(".")
        settings = getattr(importlib.import_module(f"{module.rpartition('.')[0]}.{home}"), known)
        assert is_dataclass(settings)
        assert [field.name for field in fields(settings) if f"| `{field.name}` |" not in text] == []
    else:
        assert "No configuration." in text
