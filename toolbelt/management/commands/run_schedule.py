"""What did agents schedule that is due now? (``manage.py run_schedule``)"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import time
from typing import Any

from toolbelt.management import terminal
from toolbelt.runtime import schedule

SECONDS_TO_DELIVER = 60


class Command(terminal.Command):
    """The worker of the built-in scheduler."""

    help = "Print what agents scheduled that is due, a line of JSON each, or hand each line to a program."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take what to hand the lines to, and how often to look."""
        parser.add_argument(
            "--to", metavar="PROGRAM", help="run this with each line on its input; what it refuses stays due"
        )
        parser.add_argument(
            "--every", metavar="SECONDS", type=int, help="go on, and look this often; otherwise look once"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Look, once or until interrupted."""
        program = shlex.split(options["to"]) if options["to"] else []

        async def deliver(run: schedule.Run) -> None:
            line = json.dumps(
                {
                    "key": run.key,
                    "agent": run.agent,
                    "note": run.note,
                    "due": run.due.isoformat(),
                    "missed": run.missed,
                },
                ensure_ascii=False,
            )
            if program:
                await _hand_over(program, line)
            else:
                self.stdout.write_json(line)

        while True:
            done = schedule.run_due(deliver)
            if done is None:
                self.stderr.write("Another worker is at it.")
            else:
                for run, error in done.failed:
                    self.stderr.write(f"{run.key} is not delivered and stays due: {error}")
                for key in done.unreadable:
                    self.stderr.write(f"{key} cannot be read, and is left alone.")
            if not options["every"]:
                return
            time.sleep(options["every"])


async def _hand_over(program: list[str], line: str) -> None:
    started = await asyncio.create_subprocess_exec(*program, stdin=asyncio.subprocess.PIPE)
    try:
        await asyncio.wait_for(started.communicate(line.encode() + b"\n"), SECONDS_TO_DELIVER)
    except TimeoutError:
        started.kill()
        await started.wait()
        raise RuntimeError(f"{program[0]} took more than {SECONDS_TO_DELIVER} s") from None
    if started.returncode:
        raise RuntimeError(f"{program[0]} ended with {started.returncode}")
