"""Worker processes that call tools as the workers of a server do.

Each reads requests from a pipe, handles them concurrently, and sends the answers.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import multiprocessing
import os
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any
from unittest import mock

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["tests.runtime.forked"])


class Worker:
    """A running process with the tests' database and these settings."""

    def __init__(self, **settings: Any) -> None:
        # Imported here because Django must be set up first.
        from tests.store import conftest

        self._ids = itertools.count()
        self._pending: dict[int, concurrent.futures.Future[Any]] = {}
        self._pipe, its_end = _FORKING.Pipe()
        self.process = _FORKING.Process(target=_work, args=(its_end, settings), daemon=True)
        # The first worker starts the fork server with this environment.
        environment = {"DATABASE_URL": conftest.address(), "DJANGO_SETTINGS_MODULE": "toolbelt.settings"}
        with mock.patch.dict(os.environ, environment):
            self.process.start()
        its_end.close()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def call(self, session: str, tool: str, **arguments: Any) -> concurrent.futures.Future[Any]:
        """Call a tool of ada, and return a future of the answer and its progress messages."""
        return self._ask({"session": session, "tool": tool, "arguments": arguments})

    def run(self, session: str, tool: str, **arguments: Any) -> Any:
        """Call a tool, wait, and return its result."""
        answer = self.call(session, tool, **arguments).result(60)
        assert not answer["answer"]["is_error"], answer
        return answer["answer"]["content"]["result"]

    def cancel(self, session: str) -> None:
        """Cancel the call of this session."""
        self._ask({"session": session, "tool": "", "arguments": {}})

    def end(self) -> int | None:
        """Stop the process as a supervisor does, and return its exit code."""
        self._pipe.send(None)
        self.process.join(60)
        return self.process.exitcode

    @property
    def pid(self) -> int:
        """The process id."""
        assert self.process.pid is not None
        return self.process.pid

    def kill(self) -> None:
        """Kill the process, and wait until it has ended."""
        self.process.kill()
        self.process.join(10)

    def close(self) -> None:
        """Kill the process if it still runs, and release its resources."""
        self.kill()
        self._reading.join(10)
        self._pipe.close()
        self.process.close()

    def _ask(self, request: dict[str, Any]) -> concurrent.futures.Future[Any]:
        number = next(self._ids)
        answer = self._pending[number] = concurrent.futures.Future()
        self._pipe.send({**request, "id": number})
        return answer

    def _read(self) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                answer = self._pipe.recv()
                self._pending.pop(answer["id"]).set_result(answer)
        for future in self._pending.values():
            future.set_exception(AssertionError("The worker has ended."))


@contextlib.contextmanager
def workers(number: int, **settings: Any) -> Iterator[list[Worker]]:
    """Run this many workers with these settings, and stop them."""
    running = [Worker(**settings) for _ in range(number)]
    try:
        yield running
    finally:
        for worker in running:
            worker.close()


def _work(pipe: Connection, changed: dict[str, Any]) -> None:
    import asyncio

    from django.conf import settings

    from tests.runtime.forked import calls, plugins, process_connections

    for name, value in changed.items():
        setattr(settings, name, value)

    async def answer(request: dict[str, Any]) -> None:
        steps: list[str | None] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append(message)

        with contextlib.suppress(asyncio.CancelledError):
            result = await calls.answer(
                calls.Call(
                    key=calls.RequestKey("ada", request["session"]),
                    tool=request["tool"],
                    arguments=request["arguments"],
                    progress=on_progress,
                )
            )
            pipe.send({"id": request["id"], "answer": result.document(), "steps": steps})

    async def served() -> None:
        loop = asyncio.get_running_loop()
        tasks: dict[str, asyncio.Task[None]] = {}
        with process_connections.hosted():
            while request := await loop.run_in_executor(None, pipe.recv):
                if request["tool"]:
                    tasks[request["session"]] = asyncio.create_task(answer(request))
                else:
                    tasks[request["session"]].cancel()
            await asyncio.to_thread(plugins.stop)

    asyncio.run(served())
