"""Tests of what is published: its notes, and what a wheel must have. `test_installed` builds and installs it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import toolbelt
from scripts import package

CHANGELOG = (
    "# Changelog\n\n## 0.2.0 (2027-01-02)\n\nNew.\n\n### If you used 0.1\n\nMigrate.\n\n## 0.1.0\n\nOld.\n"
)


def test_the_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    assert package.release_notes(CHANGELOG, "0.2.0") == "New.\n\n### If you used 0.1\n\nMigrate.\n"


@pytest.mark.parametrize(
    ("changelog", "version", "message"),
    [
        (CHANGELOG, "0.1.0", "newest section of the changelog is 0.2.0, and the version 0.1.0"),
        ("# Changelog\n", "0.1.0", "is missing, and the version 0.1.0"),
        ("## 0.1.0\n\n## 0.0.9\n\nOld.\n", "0.1.0", "section of 0.1.0 in the changelog is empty"),
    ],
)
def test_a_version_without_notes_is_not_built(changelog: str, version: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        package.release_notes(changelog, version)


@pytest.mark.parametrize(
    ("heading", "version", "problem"),
    [
        ("## 0.2.0 (2027-01-02)", "0.2.0", None),
        ("## 0.2.0 (unreleased)", "0.2.0", "no date for it: write ## 0.2.0 (YYYY-MM-DD)"),
        ("## 0.2.0rc1 (2027-01-02)", "0.2.0rc1", "0.2.0rc1 is not final"),
    ],
)
def test_only_a_final_and_dated_version_is_released(heading: str, version: str, problem: str | None) -> None:
    found = package.release_problems(f"# Changelog\n\n{heading}\n\nNew.\n", version)
    assert len(found) == (problem is not None)
    assert (problem or "") in "".join(found)


def test_the_changelog_has_notes_of_this_version() -> None:
    changelog = (package.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert package.release_notes(changelog, toolbelt.__version__)


def test_a_wheel_with_flaws_is_named_with_each(tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toolbelt/py.typed", "")
        archive.writestr("toolbelt/a.py", '"""A (docs/a.md)."""\nlocations.document("how-to/b.md")\n')
        archive.writestr("toolbelt/assets/templates/c.html", "{% url 'web:document' 'c.md' %}")
        archive.writestr("toolbelt/assets/docs/a.md", "")
        archive.writestr("toolbelt/assets/static/css/a.css", "")
        archive.writestr("toolbelt/assets/fixtures/demo.yaml", "")
        archive.writestr(
            "x-1.dist-info/METADATA",
            "Version: 1\nSummary: S\nLicense-Expression: MIT\nRequires-Dist: mcp<3,>=2.3\n"
            "Requires-Dist: django<6; extra == 'server'\n",
        )
    assert package.problems(wheel, "2") == [
        "It has no assets/templates/base.html.",
        "toolbelt/assets/templates/c.html points to c.md, which it does not have.",
        "toolbelt/a.py points to how-to/b.md, which it does not have.",
        "Its version is 1.",
        "It states no Requires-Python.",
        "Its base requires mcp<3,>=2.3.",
    ]
