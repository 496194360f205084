"""Tests that a belt is planned and applied on the command line: the configuration as code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError

from tests.control import sample_server
from tests.control.conftest import BELT, operator, stored
from tests.management import running
from toolbelt.control.access import tools_config
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")


def belt(*words: str, exit_code: int = 0) -> str:
    out, _, code = running.run("belt", *words)
    assert code == exit_code, out
    return out


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(**changes: Any) -> str:
        file = tmp_path / "belt.yaml"
        file.write_text(yaml.safe_dump({**BELT, **changes}))
        return str(file)

    return write


def test_an_export_of_decisions_plans_no_change(tmp_path: Path) -> None:
    file = tmp_path / "belt.yaml"
    entries.change(sample_server.OPERATOR, "tool", "git__push", {"blocked": True, "approved": "2:sha256:0"})

    assert belt("export", str(file), "--decisions") == f"Wrote {file} (10 entries).\n"
    assert "- {key: git__push, plugin: git, blocked: true, approved: '2:sha256:0'}\n" in file.read_text()
    assert "description: Push." not in file.read_text()
    assert "0 to create, 0 to change, 10 unchanged." in belt("plan", str(file))


ADA = {"key": "ada", "tools_config": {"pushing": True}}
BOB = BELT["agents"][1]


def test_a_plan_exits_with_2_if_there_are_changes_and_changes_nothing(write: Any) -> None:
    assert "0 to create, 0 to change" in belt("plan", write())
    number = queries.changes(size=1).entries[0].id

    printed = belt("plan", write(agents=[ADA, BOB]), exit_code=2).splitlines()
    assert printed[0] == "0 to create, 1 to change, 9 unchanged."
    assert "  gains git__push" in printed
    assert "  Warning: Enables destructive tools: git__push." in printed
    assert queries.changes(size=1).entries[0].id == number
    assert tools_config.read("ada") == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "agnets"], "agnets: A belt has no such section: choose of categories, plugins"),
        (["--only", "tools", "--prune"], "agents: Pruning archives"),
    ],
)
def test_a_wrong_limit_is_an_error(write: Any, words: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        belt("plan", write(), *words)


def test_wrong_arguments_exit_with_1_because_2_means_changes() -> None:
    run = subprocess.run(
        [sys.executable, "manage.py", "belt", "plan", "--markdwon"],
        capture_output=True,
        text=True,
        env={**os.environ, "TOOLBELT_ENV": "test"},
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert (run.returncode, "unrecognized arguments: --markdwon" in run.stderr) == (1, True)


def test_a_belt_with_far_reaching_effects_is_applied_only_if_confirmed(write: Any) -> None:
    file = write(agents=[ADA, BOB])
    with pytest.raises(CommandError, match=r"ada: Enables destructive tools: git__push\.\n.*--confirm"):
        belt("apply", file)
    assert tools_config.read("ada") == {}

    belt("apply", file, "--confirm", "--reason", "Release 4.")
    assert tools_config.read("ada") == {"pushing": True}
    assert queries.changes(size=1).entries[0].reason == "Release 4."
    assert "0 to create, 0 to change" in belt("plan", file)


def test_only_some_sections_are_applied(write: Any) -> None:
    reading = {**BELT["toolkits"][0], "title": "Reading"}
    file = write(agents=[ADA, BOB], toolkits=[reading, *BELT["toolkits"][1:]])

    belt("apply", file, "--only", "toolkits")
    assert entries.read("toolkit", "reading")["title"] == "Reading"
    assert tools_config.read("ada") == {}
    assert belt("plan", file, "--only", "toolkits, tools") != belt("plan", file, exit_code=2)


def test_pruning_archives_and_deletes_nothing(write: Any) -> None:
    file = write(agents=[BOB], toolkits=[])
    assert "To be archived, because the belt does not have it: ada." in belt(
        "plan", file, "--prune", exit_code=2
    )
    with pytest.raises(CommandError, match=r"ada is archived: the belt does not have it\.\n.*--confirm"):
        belt("apply", file, "--prune")
    assert "archived" not in entries.read("agent", "ada")

    assert "Archived, because the belt does not have it: ada." in belt("apply", file, "--prune", "--confirm")
    assert entries.read("agent", "ada")["archived"] is True
    assert entries.read("toolkit", "reading")["members"]
    # Without the belt's agents, an archived one stays archived, and there is nothing left to do.
    belt("plan", file, "--prune")


def test_what_cannot_be_applied_as_a_whole_is_not_applied(write: Any) -> None:
    file = write(agents=[{"key": "ada", "title": "Ada"}, {"key": "cleo", "loadout": "nonexistent"}])
    with pytest.raises(CommandError, match=r"agents\.cleo\.loadout"):
        belt("apply", file, "--prune", "--confirm")
    assert "title" not in entries.read("agent", "ada")
    assert "archived" not in entries.read("agent", "bob")


def test_the_markdown_form_names_gains_and_is_not_broken_by_names(write: Any) -> None:
    assert "Nothing: the configuration is as the belt says." in belt("plan", write(), "--markdown")
    bad = {"key": "bad", "title": "x", "members": ["git__push"]}
    printed = belt(
        "plan", write(agents=[ADA, BOB], toolkits=[*BELT["toolkits"], bad]), "--markdown", exit_code=2
    )
    row = next(line for line in printed.splitlines() if line.startswith("| `ada`"))
    assert row.split(" | ")[3] == "`git__push`"
    assert "- new toolkit `bad`" in printed
    assert r"Enables destructive tools: git\_\_push." in printed


def test_drift_exits_with_2_and_names_who_changed_what(write: Any) -> None:
    file = write()
    with pytest.raises(CommandError, match="No belt has been applied"):
        belt("drift")
    belt("apply", file)
    assert belt("drift").splitlines()[1:] == ["Nothing differs from it."]

    entries.change(sample_server.OPERATOR, "agent", "ada", {"title": "Ada"})
    first, second = belt("drift", exit_code=2).splitlines()
    assert re.fullmatch(r"Applied last: belt.yaml \([0-9a-f]{12}\), by .+, [-0-9: ]+ UTC\.", first)
    assert re.fullmatch(r"  agent ada: title, changed by olive \([-0-9: ]+ UTC\)", second)


def test_drift_takes_no_file(write: Any) -> None:
    with pytest.raises(CommandError, match="takes no file: use `belt plan"):
        belt("drift", write())


def test_a_plan_names_who_changed_what_it_would_revert(write: Any) -> None:
    file = write()
    belt("apply", file)
    entries.change(sample_server.OPERATOR, "agent", "ada", {"title": "Ada <b>"})

    printed = belt("plan", file, exit_code=2).splitlines()
    assert printed[-1] == "  agent ada: title, changed by olive"
    assert printed[-2].startswith("Applied last: belt.yaml")

    comment = belt("plan", file, "--markdown", exit_code=2)
    assert comment.endswith(
        "**Changed since `belt.yaml` was applied:**\n\n- agent ada: title, changed by olive\n"
    )
