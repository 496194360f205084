"""Runs the commands, Python programs, belts and scenarios that the documentation shows."""

from __future__ import annotations

import doctest
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core import management
from django.db import transaction

from tests import demo_plugins, fast_fixtures
from tests.docs import pages
from toolbelt import testing
from toolbelt.control.access import switches
from toolbelt.control.config import scenarios
from toolbelt.core.belts import vocabulary

EXAMPLES = pages.ROOT / "docs/examples"
# Pages that write files are run in test_plugin_pages.
SHOWING = [
    page
    for page in pages.every()
    if pages.blocks(page, "console", "pycon", "python") and not pages.writes_files(page)
]
WITH_YAML = [page for page in pages.every() if pages.blocks(page, "yaml", "json")]
# What a line of a console block is that this test runs; others (make, curl) were run by their author.
OURS = re.compile(r"^\$ (?:\w+=\S+ )*\.venv/bin/python manage\.py (belt|call|flip|surface|try|why)\b(.*)$")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def names(found: list[Path]) -> list[str]:
    return [pages.name(page) for page in found]


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Part a console block into command lines, each with what it printed."""
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
        line, _, printed = part.partition("\n")
        while line.endswith("\\"):
            more, _, printed = printed.partition("\n")
            line = f"{line[:-1].rstrip()} {more.strip()}"
        if line.startswith("$ "):
            yield line, printed


def run(name: str, arguments: str) -> str:
    """Run a command of the product as the terminal would, and give what it prints there."""
    said = io.StringIO()
    try:
        management.call_command(name, *shlex.split(arguments), stdout=said, stderr=said)
    except management.CommandError as error:
        said.write(f"CommandError: {error}\n")
    except SystemExit:
        pass  # `try` says by its exit code, too, whether all scenarios held
    return said.getvalue()


def compared(shown: str, printed: str) -> str:
    """Return how the shown output differs from the printed output; empty if it does not."""
    checker = doctest.OutputChecker()
    if not shown.strip() or checker.check_output(shown, printed, FLAGS):
        return ""
    return checker.output_difference(doctest.Example("", shown), printed, doctest.REPORT_NDIFF | FLAGS)


def shown(doc: Path) -> Iterator[str]:
    """Do what the page shows, in its order; say where something else comes out."""
    known: dict[str, Any] = {"__name__": "page"}
    for number, piece in enumerate(pages.pieces(doc)):
        where = f"{pages.name(doc)}, block {number}"
        match piece:
            case pages.Switched(key, on, agent):
                switches.flip(testing.OPERATOR.replace(confirm=True), agent, key, on)
            case pages.Block("console", text):
                for line, printed in commands(text):
                    if (ours := OURS.match(line)) and (other := compared(printed, run(ours[1], ours[2]))):
                        yield f"{where}: {line}\n{other}"
            case pages.Block("python", text):
                exec(compile(text, where, "exec"), known)  # noqa: S102 (our own pages)
            case pages.Block("pycon", text):
                yield from spoken(text, where, known)


def spoken(text: str, where: str, known: dict[str, Any]) -> Iterator[str]:
    """Return to Python what a block says; say where it answers something else."""
    test = doctest.DocTestParser().get_doctest(text, {}, where, where, 0)
    test.globs = known
    told = io.StringIO()
    if doctest.DocTestRunner(optionflags=FLAGS).run(test, out=told.write, clear_globs=False).failed:
        yield told.getvalue()


@pytest.mark.slow
@pytest.mark.django_db
def test_what_the_pages_show_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, subtests: pytest.Subtests
) -> None:
    """One test for all pages, because loading the demo takes seconds; each page finds it as it was loaded."""
    demo_plugins.use(settings, monkeypatch, tmp_path)
    fast_fixtures.demo()
    # What a page writes is thrown away with the directory.
    (tmp_path / "docs").symlink_to(pages.ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    for doc in SHOWING:
        with subtests.test(pages.name(doc)), transaction.atomic():
            differing = "\n".join(shown(doc))
            assert not differing, differing
            transaction.set_rollback(True)


@pytest.mark.parametrize("doc", pages.every(), ids=names(pages.every()))
def test_every_command_that_a_page_names_is_there(doc: Path) -> None:
    makefile = (pages.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    text = doc.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^\$? ?|`)make ([a-z-]+)\b(?! sure)", text, re.MULTILINE))
    assert named - targets == set()
    assert (
        set(re.findall(r"manage\.py ([a-z_]+)\b", text)) - management.get_commands().keys() - {"help"}
        == set()
    )
    scripts = re.findall(r"\bscripts/\w+\.\w+", text)
    assert [script for script in scripts if not (pages.ROOT / script).exists()] == []


@pytest.mark.parametrize("doc", WITH_YAML, ids=names(WITH_YAML))
def test_every_belt_and_scenario_on_a_page_has_the_right_form(doc: Path) -> None:
    for text in pages.blocks(doc, "yaml", "json"):
        written = yaml.safe_load(text)
        if isinstance(written, dict) and written.keys() & vocabulary.SECTIONS.keys():
            assert [str(found) for found in misshapen(written)] == []
        if isinstance(written, list) and all(isinstance(one, dict) and "steps" in one for one in written):
            for scenario in written:
                assert [str(failure) for failure in scenarios.run(scenario)] == []


def misshapen(belt: dict[str, Any]) -> Iterator[object]:
    """Find what no belt can hold. A page shows parts: what they name may be somewhere else."""
    yield from sorted(belt.keys() - vocabulary.SECTIONS.keys())
    for section, kind in vocabulary.SECTIONS.items():
        for entry in belt.get(section, ()):
            yield from vocabulary.KINDS[kind].shape.problems(entry, ())


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_every_example_stands_in_a_page_as_it_is(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    linking = [page for page in pages.every() if any(link.endswith(file.name) for link in pages.links(page))]
    assert linking
    assert any(text in pages.blocks(page, "yaml") for page in linking)


def test_the_example_is_told_of_in_its_scenarios_as_it_is() -> None:
    belt = yaml.safe_load((EXAMPLES / "on_call.yaml").read_text(encoding="utf-8"))
    told = yaml.safe_load((EXAMPLES / "on_call.scenarios.yaml").read_text(encoding="utf-8"))[0]["belt"]
    assert [tool["key"] for tool in told["tools"]] == [tool["key"] for tool in belt["tools"]]
    assert json.dumps(told["toolkits"][0]["members"]) == json.dumps(belt["toolkits"][0]["members"])
    assert told["toolkits"][0]["triggers"] == belt["toolkits"][0]["triggers"][:1]
