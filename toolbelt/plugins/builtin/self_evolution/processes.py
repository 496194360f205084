"""Run a program without a shell, with limits on its time and output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from toolbelt.plugins import orphans


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The result of a program. ``code`` is None if it was killed, for taking too long or printing too much."""

    code: int | None
    output: bytes
    errors: bytes
    is_truncated: bool
    is_timed_out: bool


def run(
    command: Sequence[str],
    *,
    directory: str,
    environment: Mapping[str, str],
    seconds: float,
    max_bytes: int,
    stdin_data: bytes = b"",
    errors_in_output: bool = False,
) -> Finished:
    """Run the command with exactly this environment, in a process group that ends with the call and with Toolbelt."""
    until = time.monotonic() + seconds
    # Files instead of pipes: a program left in the background may hold a pipe open forever.
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(stdin_data)
        stdin.seek(0)
        with (
            subprocess.Popen(  # noqa: S603 - a list of arguments, and no shell
                list(command),
                cwd=directory,
                env=dict(environment),
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.STDOUT if errors_in_output else stderr,
                start_new_session=True,
            ) as process,
            orphans.killed_with_parent(process.pid),
        ):
            try:
                while process.poll() is None and time.monotonic() < until:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.05)
                    if max(_size(stdout), _size(stderr)) > max_bytes:
                        break
                code = process.poll()
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
        return Finished(
            code=code,
            output=os.pread(stdout.fileno(), max_bytes, 0),
            errors=os.pread(stderr.fileno(), max_bytes, 0),
            is_truncated=_size(stdout) > max_bytes,
            is_timed_out=code is None and time.monotonic() >= until,
        )


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size
