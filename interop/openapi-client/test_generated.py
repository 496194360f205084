"""Tests that a client that is generated from the OpenAPI document flips a switch and calls a tool."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kit
import pytest

PROGRAMS = Path(sys.prefix) / "bin"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Generate a client, which fails if the generator warns; return the name of its package."""
    directory = tmp_path_factory.mktemp("generated")
    document = directory / "openapi.json"
    document.write_text(json.dumps(kit.operator("GET", "openapi.json")), encoding="utf-8")
    options = ["--output-path", str(directory / "generated"), "--meta", "none", "--fail-on-warning"]
    completed = subprocess.run(
        [str(PROGRAMS / "openapi-python-client"), "generate", "--path", str(document), *options],
        # It formats the code with ruff, which it installs beside itself.
        env={**os.environ, "PATH": os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))},
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    sys.path.insert(0, str(directory))
    return "generated"


def test_the_generated_client_flips_a_switch_and_calls_a_tool(generated: str) -> None:
    def operation(name: str) -> Any:
        return importlib.import_module(f"{generated}.api.{name}").sync

    models = importlib.import_module(f"{generated}.models")
    library = importlib.import_module(f"{generated}.client")
    operator = library.AuthenticatedClient(base_url=kit.ADDRESS, token=kit.OPERATOR_TOKEN)
    agent = library.AuthenticatedClient(base_url=kit.ADDRESS, token=kit.TOKEN, timeout=60)
    call = models.CallRequest(tool="desk__add", arguments={"a": 2, "b": 40})
    flip, call_tool = operation("access.flip_switch"), operation("agents_surfaces_and_calls.call_tool")

    assert call_tool(kit.AGENT, client=agent, body=call).content.to_dict() == {"sum": 42}
    with kit.switched("arithmetic", True):
        flip(kit.AGENT, "arithmetic", client=operator, body=models.SwitchUpdate(on=False, confirm=True))
        assert call_tool(kit.AGENT, client=agent, body=call).code == "tool-denied"
