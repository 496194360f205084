"""Processes beside that of the tests, each of which calls tools as a worker of a server does.

Run as a program it reads requests, one a line as JSON, works on them side by side, and writes the answers.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[2]


class Worker:
    """A process that runs, with the database of the tests."""

    def __init__(self, **environment: str) -> None:
        # Not before the program has set Django up.
        from tests.store import conftest

        self._ids = itertools.count()
        self._asked: dict[int, concurrent.futures.Future[Any]] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.working"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE,
            env={
                **os.environ,
                "DATABASE_URL": conftest.address(),
                "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
                "TOOLBELT_ENV": "test",
                **environment,
            },
        )
        threading.Thread(target=self._read, daemon=True).start()

    def call(self, session: str, tool: str, **arguments: Any) -> concurrent.futures.Future[Any]:
        """Call a tool of ada's; the answer is what the call came to, and the steps of its progress."""
        return self._ask({"session": session, "tool": tool, "arguments": arguments})

    def said(self, session: str, tool: str, **arguments: Any) -> Any:
        """Call a tool, wait, and return what it said."""
        answer = self.call(session, tool, **arguments).result(60)
        assert not answer["answer"]["is_error"], answer
        return answer["answer"]["content"]["result"]

    def cancel(self, session: str) -> None:
        """Cancel what is called in this session."""
        self._ask({"session": session, "tool": "", "arguments": {}})

    def end(self) -> int:
        """Terminate it as a server's supervisor does, and return its exit code."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        return self.process.wait(60)

    def _ask(self, request: dict[str, Any]) -> concurrent.futures.Future[Any]:
        number = next(self._ids)
        answer = self._asked[number] = concurrent.futures.Future()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({**request, "id": number}) + "\n")
        self.process.stdin.flush()
        return answer

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            self._asked.pop(answer["id"]).set_result(answer)
        for asked in self._asked.values():
            asked.set_exception(AssertionError("The worker has ended."))


@contextlib.contextmanager
def workers(number: int, **environment: str) -> Iterator[list[Worker]]:
    """Run so many workers, and end them."""
    running = [Worker(**environment) for _ in range(number)]
    try:
        yield running
    finally:
        for worker in running:
            worker.process.kill()
            worker.process.wait(10)
            for pipe in (worker.process.stdin, worker.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def main() -> None:
    import asyncio

    import django

    django.setup()

    from toolbelt.runtime import calls, plugins, upstream_connections

    async def answer(request: dict[str, Any]) -> None:
        steps: list[str | None] = []

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            steps.append(message)

        with contextlib.suppress(asyncio.CancelledError):
            came_to = await calls.arun(
                "ada", request["tool"], request["arguments"], request["session"], progress=heard
            )
            answered = {"id": request["id"], "answer": came_to.document(), "steps": steps}
            sys.stdout.write(json.dumps(answered) + "\n")
            sys.stdout.flush()

    async def served() -> None:
        loop = asyncio.get_running_loop()
        tasks: dict[str, asyncio.Task[None]] = {}
        with upstream_connections.hosted():
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                request = json.loads(line)
                if request["tool"]:
                    tasks[request["session"]] = asyncio.create_task(answer(request))
                else:
                    tasks[request["session"]].cancel()
            await asyncio.to_thread(plugins.stop)

    asyncio.run(served())


if __name__ == "__main__":
    main()
