"""Tests that the examples for GitHub Actions and GitLab run as far as they can here: their scripts, with a program
named `toolbelt` that records its arguments, and these arguments with the command itself.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs import pages
from toolbelt.management.commands import belt

CI = pages.ROOT / "docs/examples/ci"


def _scripts() -> dict[str, tuple[str, str]]:
    """Return the scripts that plan and apply, by the name of the example."""
    jobs = yaml.safe_load((CI / "github-actions.yml").read_text(encoding="utf-8"))["jobs"]
    steps = {step.get("name"): step.get("run", "") for job in jobs.values() for step in job["steps"]}
    gitlab = yaml.safe_load((CI / "gitlab-ci.yml").read_text(encoding="utf-8"))
    return {
        "github": (steps["Plan"], steps["Apply"]),
        "gitlab": ("\n".join(gitlab["belt-plan"]["script"]), "\n".join(gitlab["belt-apply"]["script"])),
    }


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Return what runs a script with a `toolbelt` that exits with a code; it returns the code and the call."""

    def run(script: str, exits: int) -> tuple[int, list[str]]:
        program = tmp_path / "toolbelt"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/call"\nexit {exits}\n')
        program.chmod(0o755)
        environment = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "GITHUB_SHA": "a1",
            "GITHUB_ACTOR": "eve; id",
        }
        ended = subprocess.run(
            [shutil.which("bash") or "sh", "-e", "-c", script], cwd=tmp_path, env=environment, check=False
        )
        return ended.returncode, (tmp_path / "call").read_text().splitlines()

    return run


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_a_plan_with_changes_passes_and_an_error_fails(run: Any, name: str) -> None:
    plan, apply = _scripts()[name]
    assert [run(plan, code)[0] for code in (0, 2)] == [0, 0]
    assert run(plan, 1)[0] != 0
    assert run(apply, 0)[0] == 0
    assert run(apply, 1)[0] != 0


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_command_takes_the_arguments_of_the_examples(run: Any, name: str) -> None:
    for script, act in zip(_scripts()[name], ("plan", "apply"), strict=True):
        _, words = run(script, 0)
        parsed = belt.Command().create_parser("toolbelt", "belt").parse_args(words[1:])
        assert (words[0], parsed.act, parsed.file, parsed.prune) == ("belt", act, "belt.yaml", True)
        assert parsed.confirm is (act == "apply")
        assert shlex.join(words).count("belt.yaml") == 1
