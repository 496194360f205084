"""Tests that agents are created, copied, archived and restored on the command line."""

import io

import pytest
from django.core.management import CommandError, call_command

from tests.control.conftest import operator, stored
from toolbelt.control import writing
from toolbelt.control.catalog import entries

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")


def run(*args: str) -> list[str]:
    out = io.StringIO()
    call_command("agent", *args, stdout=out)
    return out.getvalue().splitlines()


def test_an_agent_is_created_with_its_title_and_loadout(operator: writing.Write) -> None:
    entries.create(operator, "loadout", {"name": "coder"})
    printed = run("create", "cleo", "--title", "Cleo", "--loadout", "coder")
    assert printed[0].startswith("Created cleo. Tools: 0. Tokens: ")
    assert printed[1].endswith("connect cleo --client CLIENT")
    assert entries.read("agent", "cleo") == {"key": "cleo", "title": "Cleo", "loadout": "coder"}
    with pytest.raises(
        CommandError, match="'cleo' already exists: change that agent, or choose another name"
    ):
        run("create", "cleo")


def test_a_copy_has_the_switches_of_the_original() -> None:
    assert run("copy", "bob", "rob")[0].startswith("Copied bob to rob. Tools: 3.")
    assert entries.read("agent", "rob") == {**entries.read("agent", "bob"), "key": "rob"}
    with pytest.raises(CommandError, match=r"no agent named 'bbo'\. Did you mean bob"):
        run("copy", "bbo", "x")


def test_archiving_is_confirmed_and_can_be_ended() -> None:
    with pytest.raises(CommandError, match=r"its tokens are rejected.*--confirm"):
        run("archive", "ada")
    assert run("archive", "ada", "--confirm")[0].startswith("ada is archived: its requests are rejected.")
    assert entries.read("agent", "ada")["archived"] is True
    assert run("archive", "ada", "--confirm") == ["No changes: ada is already archived."]
    assert run("restore", "ada") == ["ada is restored, with everything it had."]
    assert "archived" not in entries.read("agent", "ada")
