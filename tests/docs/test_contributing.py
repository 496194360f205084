"""Tests that CONTRIBUTING and its recipes describe the current code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.docs import pages

TEXT = (pages.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = (pages.ROOT / "docs/recipes.md").read_text(encoding="utf-8")
PACKAGE = pages.ROOT / "toolbelt"
# Imported by nearly every package.
COMMON = {"conf", "locations"}


def imports(package: Path) -> set[str]:
    """Return the other packages that a package imports."""
    modules: set[str] = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    names = {module.split(".")[1] for module in modules if module.startswith("toolbelt.")}
    return {name for name in names if (PACKAGE / name).is_dir()} - {package.name}


def test_every_file_named_in_contributing_exists() -> None:
    # Paths in the table of modules are relative to the package; NAME is a placeholder.
    named = {
        path for path in re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)`", TEXT + RECIPES) if "NAME" not in path
    }
    assert named
    assert [
        path
        for path in sorted(named)
        if not any((pages.ROOT / top / path).exists() for top in ("", "toolbelt"))
    ] == []


def test_the_table_of_packages_lists_the_imports_of_each_package() -> None:
    table = TEXT.partition("| package in `toolbelt` |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1:4] for row in table.splitlines()[2:]]
    stated = {
        name: set(re.findall(r"`(\w+)`", imported))
        for names, _, imported in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    packages = {path.parent.name: imports(path.parent) for path in PACKAGE.glob("*/__init__.py")}
    assert {name: stated.get(name) for name in packages} == {
        name: imported - COMMON for name, imported in packages.items()
    }
