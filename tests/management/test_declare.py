"""Tests that the command declares the tools of a file, and prints what changed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core import management

from toolbelt import models, testing
from toolbelt.control.config import belts


@pytest.fixture(autouse=True)
def stored(db: None) -> None:
    belts.import_(testing.OPERATOR, {"plugins": [{"name": "shop", "namespace": "shop"}]})


def run(file: Path, text: str, *options: str) -> str:
    file.write_text(text, encoding="utf-8")
    out = io.StringIO()
    management.call_command("declare", "shop", str(file), *options, stdout=out)
    return out.getvalue()


def test_a_file_is_declared_and_repeating_it_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tools.yaml"
    text = "- name: refund\n  description: Refund an order.\n"
    lines = run(file, text).splitlines()
    assert (lines[0], lines[1].startswith("To review: shop__refund. See `")) == ("created shop__refund", True)
    assert lines[1].endswith("mcp review shop`.")
    assert run(file, text).splitlines() == [lines[1], "No changes: these tools were declared already."]
    assert run(file, "[]") == "No changes: these tools were declared already.\n"
    assert run(file, "[]", "--complete") == "retired shop__refund\n"


def test_the_hashes_of_a_file_are_printed_and_approve_its_tools_in_advance(tmp_path: Path) -> None:
    tools, hashes = tmp_path / "tools.yaml", tmp_path / "hashes.json"
    text = "- name: refund\n  description: Refund an order.\n"
    hashes.write_text(run(tools, text, "--hashes"), encoding="utf-8")
    assert not models.Tool.objects.exists()
    out = io.StringIO()
    management.call_command("mcp", "approve", "shop", "--file", str(hashes), stdout=out)
    assert out.getvalue() == "Approved shop__refund in advance.\n"
    assert run(tools, text) == "created shop__refund\n"
    assert models.Tool.objects.get().seen
    assert "To review: shop__refund" in run(tools, text.replace("an order", "it all"))


@pytest.mark.parametrize("text", ["name: refund", "[refund]"])
def test_a_file_that_is_not_a_list_of_tools_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(management.CommandError, match="not a list of tools"):
        run(tmp_path / "tools.yaml", text)


def test_a_missing_file_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        management.CommandError, match=r"missing\.yaml: cannot be read: No such file or directory\.$"
    ):
        management.call_command("declare", "shop", str(tmp_path / "missing.yaml"))


def test_a_file_that_is_not_yaml_is_reported_by_name_and_line(tmp_path: Path) -> None:
    with pytest.raises(
        management.CommandError, match=r"tools\.yaml: This is not YAML: .* \(line 2, column 1\)"
    ):
        run(tmp_path / "tools.yaml", "- name: [refund\n")
