"""Tests that an agent's environment needs none of the server's dependencies."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ADAPTERS = ("google-adk", "langchain", "openai-agents", "pydantic-ai")

_WITHOUT_SERVER_PACKAGES = """
import sys

class BlockingFinder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"django", "mcp", "asgiref", "numpy", "re2", "pydantic", "yaml", "jsonschema"}:
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, BlockingFinder())
from toolbelt.adapters import runs
from toolbelt.adapters.connection import conversation, http, protocol
"""


def test_the_shared_code_of_framework_adapters_needs_only_httpx() -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_SERVER_PACKAGES], cwd=ROOT, check=True)


def test_programs_and_plugins_do_without_the_servers_numpy() -> None:
    program = """
import sys
sys.modules["numpy"] = None
import toolbelt.adapters, toolbelt.adapters.plain, toolbelt.plugins
from toolbelt.plugins import builtin
for module, _ in builtin.CLASSES.values():
    __import__(module)
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


@pytest.mark.parametrize("extra", ADAPTERS)
def test_an_adapter_extra_installs_its_framework_and_no_server_package(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (framework,) = project["optional-dependencies"][extra]
    assert framework.startswith(extra)
    installed = {line.partition(">")[0].partition("[")[0] for line in project["dependencies"]}
    assert not installed & {"django", "mcp", "numpy", "uvicorn", "psycopg", "django-ninja"}


@pytest.mark.parametrize("extra", ADAPTERS)
def test_every_adapter_has_interop_tests_with_the_real_framework(extra: str) -> None:
    part = ROOT / "interop" / extra
    # With the server's packages, because a program can also use Toolbelt in process.
    requirements = (part / "requirements.txt").read_text(encoding="utf-8").split()
    assert f"toolbelt-switchboard[{extra},server]" in requirements
    assert (ROOT / "toolbelt" / "adapters" / f"{extra.replace('-', '_')}.py").exists()
    assert [*part.glob("test_*.py")]
