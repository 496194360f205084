"""An agent's environment needs none of the server's dependencies."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ADAPTERS = ("google-adk", "langchain", "openai-agents", "pydantic-ai")

_ALONE = """
import sys

class Nobody:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"django", "mcp", "asgiref", "re2", "pydantic", "yaml", "jsonschema"}:
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Nobody())
from toolbelt.adapters import runs
from toolbelt.adapters.connection import http, protocol
"""


def test_what_the_clients_of_frameworks_share_needs_httpx_and_nothing_else() -> None:
    subprocess.run([sys.executable, "-c", _ALONE], cwd=ROOT, check=True)


@pytest.mark.parametrize("extra", ADAPTERS)
def test_an_adapters_extra_brings_its_framework_and_nothing_of_the_servers(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (framework,) = project["optional-dependencies"][extra]
    assert framework.startswith(extra)
    brought = {line.partition(">")[0].partition("[")[0] for line in project["dependencies"]}
    assert not brought & {"django", "mcp", "uvicorn", "psycopg", "django-ninja"}


@pytest.mark.parametrize("extra", ADAPTERS)
def test_every_adapter_is_tried_with_the_real_framework(extra: str) -> None:
    part = ROOT / "interop" / extra
    # With the server's packages, too: a program may also use Toolbelt in process.
    requirements = (part / "requirements.txt").read_text(encoding="utf-8").split()
    assert f"toolbelt-switchboard[{extra},server]" in requirements
    assert (ROOT / "toolbelt" / "adapters" / f"{extra.replace('-', '_')}.py").exists()
    assert [*part.glob("test_*.py")]
