"""Tests that a smaller belt is proposed on the command line, for people, programs and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError

from tests.control.test_least_privilege import lived
from tests.management import running
from toolbelt.control.config import belt_texts, belts

__all__ = ["lived"]


def propose(*words: str) -> str:
    return running.run("propose", *words)[0]


def test_people_read_what_is_cleared_and_why_the_rest_stays() -> None:
    lines = propose("--all", "--keep", "clock").splitlines()

    assert lines[0].startswith("bob: ")
    assert lines[4].startswith("ada: left as it is: ")
    assert "pushing" in lines[7]
    assert lines[-1].endswith("clock")


def test_programs_read_everything_as_json() -> None:
    document = json.loads(propose("bob", "--json"))

    [bob] = document["agents"]
    assert [step["kind"] for step in bob["steps"]] == ["load", "clear", "loadout"]
    assert bob["tokens"][0] > bob["tokens"][1]
    assert (document["proof"]["refused"], document["proof"]["coverage"]) == (0, 1.0)


def test_its_belt_is_a_file_that_is_applied_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "smaller.yaml"
    file.write_text(propose("bob", "--belt"))

    assert running.run("prove", str(file))[2] == 0
    running.run("belt", "apply", str(file), "--confirm")

    assert "loadout: bob-used" in belt_texts.write(belts.export(), "yaml")
    assert propose("bob", "--belt") == "{}\n"


@pytest.mark.parametrize(
    "words", [(), ("bob", "--all"), ("nobody",), ("bob", "--days", "0"), ("bob", "--keep", "*x")]
)
def test_impossible_requests_are_errors(words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        propose(*words)
