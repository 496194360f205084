"""Helpers that add upstream servers for tests and grant their tools to an agent."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import scripting
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.core import admitting as gate
from toolbelt.runtime import calls, plugins
from toolbelt.runtime.operators import OPERATORS
from toolbelt.runtime.upstream import server_lists
from toolbelt.store import snapshots

OPERATOR = writing.by("olive", via="command")
BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    plugins.stop()
    snapshots.forget()


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


@pytest.fixture
def wait_for_news() -> Iterator[Callable[[], None]]:
    """Yield a function that waits until an unsolicited answer of a server was recorded."""
    was_heard = threading.Event()

    def listen(name: str, answer: server_lists.ServerListing) -> None:
        configured.record_unsolicited(name, answer)
        was_heard.set()

    def wait() -> None:
        assert was_heard.wait(20)
        was_heard.clear()

    OPERATORS.record_list = listen
    yield wait
    OPERATORS.record_list = configured.record_unsolicited


def add(name: str, connection: dict[str, Any], **given: Any) -> None:
    configured.add(OPERATOR, name, connection, trusted=True, **given)


def refresh(*names: str) -> dict[str, configured.RecordedTools]:
    return server_lists.refresh(names, lambda name, answer: configured.record(OPERATOR, name, answer))


def grant(*tools: str) -> None:
    belts.import_(OPERATOR, {"agents": [{"key": "ada", "tools": list(tools)}]})


def ready(script: scripting.Script, *tools: str, **connection: Any) -> None:
    """Add the scripted server, and grant the agent these of its tools."""
    add("files", {**script.connection, **connection})
    assert refresh("files")["files"].error == ""
    grant(*(f"files__{tool}" for tool in tools))


def content(tool: str, arguments: Any = None) -> Any:
    answer = calls.run("ada", tool, {} if arguments is None else arguments)
    assert isinstance(answer, calls.Result), answer
    return answer.content


def refusal(tool: str, arguments: Any = None) -> tuple[str, str]:
    answer = calls.run("ada", tool, {} if arguments is None else arguments)
    assert isinstance(answer, gate.Refusal), answer
    return answer.code, answer.message


def two(tmp_path: Path) -> tuple[scripting.Script, scripting.Script]:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return scripting.Script(tmp_path / "one"), scripting.Script(tmp_path / "two")
