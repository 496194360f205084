"""Tests that no text of an agent or an upstream server controls the terminal on which a command runs."""

from __future__ import annotations

import importlib
import io
import json
import pkgutil
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.plugins.upstream import listing, scripting
from tests.runtime.connected import stopped as stopped
from toolbelt.core.imported import cleaning
from toolbelt.management import commands, terminal
from toolbelt.runtime import masking

# These erase the line, reverse the direction of text, are invisible, or are half of a surrogate pair.
HIDDEN = "\x1b[2K\u202eevil\u200b\x07\ud800"
SHOWN = "[U+001B][2K[U+202E]evil[U+200B][U+0007][U+D800]"


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(commands.__path__)])
def test_every_command_uses_the_safe_output(name: str) -> None:
    command = importlib.import_module(f"toolbelt.management.commands.{name}")
    assert issubclass(command.Command, terminal.Command)


def test_hidden_characters_are_escaped_on_stdout_and_stderr() -> None:
    out, err = io.StringIO(), io.StringIO()

    class Command(terminal.Command):
        requires_system_checks = ()

        def handle(self, *args: str, **options: str) -> None:
            self.stdout.write(f"one\n\ttwo {HIDDEN}")
            self.stderr.write(HIDDEN)

    call_command(Command(), stdout=out, stderr=err)
    assert out.getvalue() == f"one\n\ttwo {SHOWN}\n"
    assert err.getvalue() == f"{SHOWN}\n"
    out, err = io.StringIO(), io.StringIO()
    Command(out, err).execute(no_color=True, force_color=False, skip_checks=True)
    assert (out.getvalue(), err.getvalue()) == (f"one\n\ttwo {SHOWN}\n", f"{SHOWN}\n")


def test_a_secret_is_masked() -> None:
    masking.add("sesame-8000")
    out = io.StringIO()
    terminal.Output(out).write("401 for sesame-8000")
    assert out.getvalue() == "401 for [withheld]\n"


def test_json_output_escapes_hidden_characters_without_changing_the_data() -> None:
    document = {"note": f'{HIDDEN} é \U0001f469\u200d\U0001f4bb \U000e0041 "\\'}
    out = io.StringIO()
    terminal.Output(out).write_json(json.dumps(document, indent=2, ensure_ascii=False))
    assert not any(map(cleaning.is_hidden, out.getvalue()))
    assert "é" in out.getvalue()
    assert json.loads(out.getvalue()) == document


@pytest.mark.parametrize(("is_terminal", "written"), [(True, "a: [U+202E]b\n"), (False, "a: \u202eb\n")])
def test_yaml_is_only_escaped_on_a_terminal(
    is_terminal: bool, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: is_terminal)
    terminal.Output(out).write_yaml("a: \u202eb\n")
    assert out.getvalue() == written


@pytest.mark.django_db
def test_a_review_escapes_hidden_characters_in_a_schema(tmp_path: Path) -> None:
    script = scripting.Script(tmp_path)
    hidden = "\x1b[2K\u202eevil"
    schema = {"type": "object", "properties": {"mode": {"enum": [hidden]}}}
    script.lists(listing.tool("read", "Read.", inputSchema=schema))
    call_command("mcp", "add", "files", "--command", script.connection["command"], *script.connection["args"])
    out = io.StringIO()
    call_command("mcp", "review", "--full", "files", stdout=out)
    assert not any(map(cleaning.is_hidden, out.getvalue()))
    assert "[U+202E]evil" in out.getvalue()
