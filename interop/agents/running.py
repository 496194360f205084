"""Run an agent once, in a new home directory, with the scripted model."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import kit
import model
from agents import Agent, Workspace

PACKAGES = Path(sys.prefix) / "node/node_modules"
TIMEOUT = 180
# The address of a proxy that does not exist, for requests beyond this machine.
UNREACHABLE = "http://127.0.0.1:9"


@dataclass(frozen=True, slots=True)
class Run:
    """The tools that the model was offered, the results that it received, and the agent's output."""

    offered: set[str]
    answers: str
    printed: str


def run(agent: Agent, *, tool: str, arguments: dict[str, object]) -> Run:
    """Run an agent with a model that calls the tool if it is offered."""
    scripted = model.Model(tool=tool, arguments=arguments)
    with tempfile.TemporaryDirectory(prefix="toolbelt-agent-") as home, model.Server(scripted) as server:
        workspace = Workspace(Path(home), Path(home) / "project", server.address)
        workspace.project.mkdir()
        agent.setup(workspace)
        program = PACKAGES / (agent.program if "/" in agent.program else f".bin/{agent.program}")
        env = {
            "PATH": os.pathsep.join([str(program.parent), str(PACKAGES / ".bin"), os.environ["PATH"]]),
            "HOME": home,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "CI": "1",
            "NO_COLOR": "1",
            "DO_NOT_TRACK": "1",
            "DISABLE_TELEMETRY": "1",
            "HTTPS_PROXY": UNREACHABLE,
            "HTTP_PROXY": UNREACHABLE,
            "NO_PROXY": "127.0.0.1,localhost",
            "TOOLBELT_TOKEN": kit.TOKEN,
            **agent.env(workspace),
        }
        try:
            for command in agent.commands(workspace):
                _run(["sh", "-c", command], env, workspace.project)
            printed = _run([str(program), *agent.arguments], env, workspace.project)
        finally:
            _kill_daemons(home)
    return Run(scripted.offered, scripted.answers, printed)


def _run(command: list[str], env: dict[str, str], cwd: Path) -> str:
    completed = subprocess.run(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    return completed.stdout


def _kill_daemons(home: str) -> None:
    """Kill the daemons that an agent leaves behind: the processes with this home directory."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
