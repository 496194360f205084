"""Tests that run the commands, Python programs, belts and scenarios of the documentation."""

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
from toolbelt.core.belts import fields, vocabulary

EXAMPLES = pages.ROOT / "docs/examples"
# test_plugin_pages runs the pages that write files.
RUNNABLE = [
    page
    for page in pages.every()
    if pages.blocks(page, "console", "pycon", "python") and not pages.writes_files(page)
]
WITH_YAML = [page for page in pages.every() if pages.blocks(page, "yaml", "json")]
# The console lines that this test runs; other commands (make, curl) are not run.
OUR_COMMAND = re.compile(r"^\$ (?:\w+=\S+ )*toolbelt (belt|call|flip|surface|try|why)\b(.*)$")
# A command of Toolbelt at the beginning of a line, of code in a sentence, or of a substitution.
NAMED_COMMAND = re.compile(r"(?:^ *(?:\$ )?(?:\w+=\S+ )*|`|\$\()toolbelt ([a-z_]+)\b", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def names(docs: list[Path]) -> list[str]:
    return [pages.name(doc) for doc in docs]


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Split a console block into command lines, each with its output."""
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
        line, _, printed = part.partition("\n")
        while line.endswith("\\"):
            more, _, printed = printed.partition("\n")
            line = f"{line[:-1].rstrip()} {more.strip()}"
        if line.startswith("$ "):
            yield line, printed


def run(name: str, arguments: str) -> str:
    """Run a management command and return what it would print in a terminal."""
    output = io.StringIO()
    try:
        management.call_command(name, *shlex.split(arguments), stdout=output, stderr=output)
    except management.CommandError as error:
        output.write(f"CommandError: {error}\n")
    except SystemExit:
        pass  # `try` also sets its exit code to whether all scenarios passed
    return output.getvalue()


def difference(shown: str, printed: str) -> str:
    """Return how the shown output differs from the printed output; empty if it does not."""
    checker = doctest.OutputChecker()
    if not shown.strip() or checker.check_output(shown, printed, FLAGS):
        return ""
    return checker.output_difference(doctest.Example("", shown), printed, doctest.REPORT_NDIFF | FLAGS)


def differences(doc: Path) -> Iterator[str]:
    """Run the blocks of the page in order; yield each difference from the output it shows."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for number, piece in enumerate(pages.pieces(doc)):
        where = f"{pages.name(doc)}, block {number}"
        match piece:
            case pages.Switch(key, on, agent):
                switches.flip(testing.OPERATOR.replace(confirm=True), agent, key, on)
            case pages.Block("console", text):
                for line, printed in commands(text):
                    if (command := OUR_COMMAND.match(line)) and (
                        different := difference(printed, run(command[1], command[2]))
                    ):
                        yield f"{where}: {line}\n{different}"
            case pages.Block("python", text):
                exec(compile(text, where, "exec"), namespace)  # noqa: S102 (our own pages)
            case pages.Block("pycon", text):
                yield from session_differences(text, where, namespace)


def session_differences(text: str, where: str, namespace: dict[str, Any]) -> Iterator[str]:
    """Run an interactive Python block; yield a report if its output differs."""
    test = doctest.DocTestParser().get_doctest(text, {}, where, where, 0)
    test.globs = namespace
    report = io.StringIO()
    if doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.write, clear_globs=False).failed:
        yield report.getvalue()


@pytest.mark.slow
@pytest.mark.django_db
def test_the_pages_show_the_actual_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, subtests: pytest.Subtests
) -> None:
    """One test for all pages, because loading the demo takes seconds; each page starts from the unchanged demo."""
    demo_plugins.use(settings, monkeypatch, tmp_path)
    settings.TOOLBELT_COMMAND = "toolbelt"
    fast_fixtures.demo()
    # The files that a page writes are discarded with the directory.
    (tmp_path / "docs").symlink_to(pages.ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    for doc in RUNNABLE:
        with subtests.test(pages.name(doc)), transaction.atomic():
            differing = "\n".join(differences(doc))
            assert not differing, differing
            transaction.set_rollback(True)


@pytest.mark.parametrize("doc", pages.every(), ids=names(pages.every()))
def test_every_command_named_on_a_page_exists(doc: Path) -> None:
    makefile = (pages.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    text = doc.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^\$? ?|`)make ([a-z-]+)\b(?! sure)", text, re.MULTILINE))
    assert named - targets == set()
    commands_of_the_package = {"init", "demo", "manage", "help"}
    assert {
        *NAMED_COMMAND.findall(text)
    } - management.get_commands().keys() - commands_of_the_package == set()
    scripts = re.findall(r"\bscripts/\w+\.\w+", text)
    assert [script for script in scripts if not (pages.ROOT / script).exists()] == []


@pytest.mark.parametrize("doc", WITH_YAML, ids=names(WITH_YAML))
def test_every_belt_and_scenario_on_a_page_is_valid(doc: Path) -> None:
    for text in pages.blocks(doc, "yaml", "json"):
        written = yaml.safe_load(text)
        if isinstance(written, dict) and written.keys() & vocabulary.SECTIONS.keys():
            assert [str(problem) for problem in belt_problems(written)] == []
        if isinstance(written, list) and all(
            isinstance(entry, dict) and "steps" in entry for entry in written
        ):
            for scenario in written:
                assert [str(failure) for failure in scenarios.run(scenario)] == []


def belt_problems(belt: dict[str, Any]) -> Iterator[object]:
    """Yield what is invalid in any belt. A page shows excerpts, so references are not checked."""
    yield from sorted(belt.keys() - vocabulary.SECTIONS.keys())
    for section, kind in vocabulary.SECTIONS.items():
        for entry in belt.get(section, ()):
            yield from fields.read(vocabulary.KINDS[kind].model, entry)[1]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_every_example_file_is_shown_verbatim_on_a_page(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    linking = [page for page in pages.every() if any(link.endswith(file.name) for link in pages.links(page))]
    assert linking
    assert any(text in pages.blocks(page, "yaml") for page in linking)


def test_the_scenarios_of_the_example_use_its_current_belt() -> None:
    belt = yaml.safe_load((EXAMPLES / "on_call.yaml").read_text(encoding="utf-8"))
    used = yaml.safe_load((EXAMPLES / "on_call.scenarios.yaml").read_text(encoding="utf-8"))[0]["belt"]
    assert [tool["key"] for tool in used["tools"]] == [tool["key"] for tool in belt["tools"]]
    assert json.dumps(used["toolkits"][0]["members"]) == json.dumps(belt["toolkits"][0]["members"])
    assert used["toolkits"][0]["triggers"] == belt["toolkits"][0]["triggers"][:1]
