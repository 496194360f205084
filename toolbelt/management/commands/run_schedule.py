"""``manage.py run_schedule``: deliver agents' scheduled notes."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import time
from typing import Any

from django.core.management.base import CommandError

from toolbelt.management import terminal
from toolbelt.runtime import schedule

SECONDS_TO_DELIVER = 60


class Command(terminal.Command):
    """The worker of the built-in scheduler."""

    help = "Print agents' scheduled notes that are due, as lines of JSON, or pass each line to a program."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the program and the interval."""
        parser.add_argument(
            "--to",
            metavar="PROGRAM",
            help="run this program with each line as its input; if it fails, the note stays due",
        )
        parser.add_argument(
            "--every", metavar="SECONDS", type=int, help="keep running, and check at this interval"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Deliver due notes, once or until interrupted."""
        if options["every"] is not None and options["every"] < 1:
            raise CommandError("--every must be at least 1 second.")
        try:
            program = shlex.split(options["to"]) if options["to"] else []
        except ValueError as invalid:
            raise CommandError(f"--to {options['to']!r} cannot be read: {invalid}.") from invalid

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
            result = schedule.run_due(deliver)
            if result is None:
                self.stderr.write("Another worker is running.")
            else:
                for run, error in result.failed:
                    self.stderr.write(f"{run.key} was not delivered and stays due: {error}")
                for key in result.unreadable:
                    self.stderr.write(f"{key} cannot be read and was skipped.")
            if not options["every"]:
                return
            time.sleep(options["every"])


async def _hand_over(program: list[str], line: str) -> None:
    process = await asyncio.create_subprocess_exec(*program, stdin=asyncio.subprocess.PIPE)
    try:
        await asyncio.wait_for(process.communicate(line.encode() + b"\n"), SECONDS_TO_DELIVER)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise RuntimeError(f"{program[0]} took more than {SECONDS_TO_DELIVER} s") from None
    if process.returncode:
        raise RuntimeError(f"{program[0]} ended with {process.returncode}")
