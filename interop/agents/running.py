"""An agent that is run once, in a home of its own, with the scripted model."""

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
from agents import Agent, Place

PACKAGES = Path(sys.prefix) / "node/node_modules"
SECONDS = 180
# A proxy that does not exist, for whatever an agent requests beyond this machine.
NOBODY = "http://127.0.0.1:9"


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it: what the model was offered and told, and what the agent printed."""

    offered: set[str]
    answers: str
    printed: str


def run(agent: Agent, *, tool: str, arguments: dict[str, object]) -> Run:
    """Ask an agent something, with a model that calls the tool if it is offered."""
    scripted = model.Model(tool=tool, arguments=arguments)
    with tempfile.TemporaryDirectory(prefix="toolbelt-agent-") as home, model.Server(scripted) as server:
        place = Place(Path(home), Path(home) / "project", server.address)
        place.project.mkdir()
        agent.setup(place)
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
            "HTTPS_PROXY": NOBODY,
            "HTTP_PROXY": NOBODY,
            "NO_PROXY": "127.0.0.1,localhost",
            "TOOLBELT_TOKEN": kit.TOKEN,
            **agent.env(place),
        }
        try:
            for command in agent.commands(place):
                _do(["sh", "-c", command], env, place.project)
            printed = _do([str(program), *agent.arguments], env, place.project)
        finally:
            _end_what_was_left(home)
    return Run(scripted.offered, scripted.answers, printed)


def _do(command: list[str], env: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    return done.stdout


def _end_what_was_left(home: str) -> None:
    """End the daemons that an agent leaves behind: what still runs in this home directory of its own."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
