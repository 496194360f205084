"""Does a real server answer in front of Django, see what other processes commit, and end its plugins?"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.api.conftest import SETUP
from tests.front import processes
from toolbelt.control import switches

# Says that it was shut down, in a file.
PLUGIN = """
from pathlib import Path

from toolbelt.plugins import contract

class Farewell(contract.ToolPlugin):
    name = namespace = "farewell"
    version = "1"
    tools = ()
    async def initialize(self, runtime): pass
    async def execute(self, tool_name, args): return {}
    async def shutdown(self): Path(__file__).with_name("farewell").touch()
"""


@pytest.mark.slow
def test_a_server_answers_in_front_sees_flips_and_ends_its_plugins(ada: str, tmp_path: Path) -> None:
    (tmp_path / "saying_farewell.py").write_text(PLUGIN)
    plugins = tmp_path / "plugins.yaml"
    plugins.write_text("tool_plugins:\n  - module: saying_farewell\n    class_name: Farewell\n")
    environment = {"TOOLBELT_PLUGINS_FILE": str(plugins), "TOOLBELT_PLUGIN_INIT": "start"}
    with (
        processes.served(python_path=tmp_path, environment=environment) as server,
        server.client(ada) as client,
    ):
        first, second, third = (client.get("/api/v1/agents/ada/surface") for _ in range(3))
        assert first.status_code == 200
        assert first.content == second.content == third.content
        assert first.headers.keys() == third.headers.keys()
        switches.flip(SETUP, "ada", "reading", True)
        flipped = [client.get("/api/v1/agents/ada/surface").json() for _ in range(3)]
        assert all("kb__find" in one["active_tools"] for one in flipped)
    assert (tmp_path / "farewell").exists(), server.log
    assert server.process.returncode in (0, -signal.SIGTERM), server.log
    assert "Traceback" not in server.log
    assert ada not in server.log
