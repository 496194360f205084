"""Does a real server answer in front of Django, see what other processes commit, and end its plugins?"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from django.conf import settings

from tests.api.conftest import SETUP
from tests.store.conftest import address
from toolbelt.control import switches

OPTIONS = ("--lifespan", "on", "--loop", "uvloop", "--http", "httptools", "--no-access-log")
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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "toolbelt.asgi:application", *OPTIONS, "--port", str(port)],
        env={
            **os.environ,
            "TOOLBELT_ENV": "test",
            "DATABASE_URL": address(),
            "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
            "TOOLBELT_PLUGINS_FILE": str(plugins),
            "TOOLBELT_PLUGIN_INIT": "start",
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(settings.BASE_DIR)]),
        },
        cwd=settings.BASE_DIR,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=60, transport=httpx.HTTPTransport(retries=12)
        ) as client:
            client.headers.update({"Authorization": f"Bearer {ada}", "Host": "localhost"})
            first, second, third = (client.get("/api/v1/agents/ada/surface") for _ in range(3))
            assert first.status_code == 200
            assert first.content == second.content == third.content
            assert first.headers.keys() == third.headers.keys()
            switches.flip(SETUP, "ada", "reading", True)
            flipped = [client.get("/api/v1/agents/ada/surface").json() for _ in range(3)]
            assert all("kb__find" in one["active_tools"] for one in flipped)
    finally:
        running.send_signal(signal.SIGTERM)
        _, log = running.communicate()
    assert (tmp_path / "farewell").exists(), log
    assert running.returncode in (0, -signal.SIGTERM), log
    assert "Traceback" not in log
    assert ada not in log
