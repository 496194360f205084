"""Tests that every link of the documentation has a target, and that no page depends on a particular machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import pages

EVERY = pages.every()
# Directories and package indexes of the author's machine, which the reader does not have.
FOREIGN = re.compile(r"(?<![\w.])/(?:work|root|home|Users)/|pypi\.|npmjs\.|PIP_INDEX_URL=\S", re.IGNORECASE)

# In docstrings, for example: "docs/concepts.md: Policy".
REFERENCE = re.compile(r"(docs/[\w/-]+\.md)(?:: ([A-Z][\w ]+))?")


def has_target(doc: Path, link: str) -> bool:
    if "://" in link or link.startswith("mailto:"):
        return True
    file, _, anchor = link.partition("#")
    target = (doc.parent / file).resolve() if file else doc
    return target.exists() and (not anchor or anchor in pages.anchors(target))


def test_every_link_has_a_target() -> None:
    broken = [
        (pages.name(doc), link) for doc in EVERY for link in pages.links(doc) if not has_target(doc, link)
    ]
    assert broken == []


def test_every_page_and_section_that_the_code_refers_to_exists() -> None:
    broken = []
    for module in sorted(pages.ROOT.glob("toolbelt/**/*.py")):
        for page, section in REFERENCE.findall(module.read_text(encoding="utf-8")):
            target = pages.ROOT / page
            anchor = section.lower().replace(" ", "-")
            if not target.exists() or (anchor and anchor not in pages.anchors(target)):
                broken.append(f"{pages.name(module)}: {page}: {section}")
    assert broken == []


def test_no_page_mentions_paths_or_hosts_of_one_machine() -> None:
    found = [(pages.name(doc), text) for doc in EVERY for text in FOREIGN.findall(doc.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("index", "listed"),
    [
        ("docs/README.md", "docs/*.md docs/how-to/*.md docs/reference/*.md"),
        ("docs/decisions/README.md", "docs/decisions/*.md"),
    ],
)
def test_every_page_is_listed_in_its_index(index: str, listed: str) -> None:
    start = pages.ROOT / index
    named = {(start.parent / link.partition("#")[0]).resolve() for link in pages.links(start)}
    every = {page for pattern in listed.split() for page in pages.ROOT.glob(pattern)}
    assert sorted(pages.name(page) for page in every - named - {start}) == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    start = pages.ROOT / "README.md"
    reached, to_read = {start}, [start]
    while to_read:
        page = to_read.pop()
        for link in pages.links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists() and target not in reached:
                reached.add(target)
                to_read.append(target)
    docs = {page for page in EVERY if pages.name(page).startswith("docs/")}
    assert {pages.name(page) for page in docs - reached} == set()


def test_every_screenshot_is_shown_on_a_page() -> None:
    shown = {(doc.parent / link).resolve() for doc in EVERY for link in pages.links(doc) if "://" not in link}
    screenshots = set((pages.ROOT / "docs/screens").iterdir())
    assert screenshots
    assert sorted(pages.name(picture) for picture in screenshots - shown) == []


def test_no_page_appends_extras_to_a_pattern_of_wheels() -> None:
    """A shell would match files whose names end in [server], and pass the pattern itself to pip."""
    wrong = [page.name for page in pages.every() if re.search(r"\*\.whl['\"]?\[", page.read_text("utf-8"))]
    assert wrong == []
