"""How does another program run for us: without a shell, no longer than allowed, saying no more than is kept?"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolbelt.plugins import orphans

_CHUNK = 1 << 16
_LOOK_AGAIN = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How it ended. ``code`` is None where it was ended from here: out of time, or after too much was said."""

    code: int | None
    output: bytes
    errors: bytes = b""
    cut: bool = False
    late: bool = False


def run(
    command: Sequence[str],
    *,
    directory: str,
    environment: Mapping[str, str],
    seconds: float,
    most: int,
    keep: Literal["start", "end"] = "start",
    given: bytes = b"",
) -> Finished:
    """Run the command with exactly this environment, in a process group that outlives neither call nor Toolbelt.

    ``keep="end"`` keeps the last ``most`` bytes, errors among them; ``"start"`` the first, and ends it after those.
    """
    until = time.monotonic() + seconds
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        with (
            subprocess.Popen(  # noqa: S603 - a list of arguments, and no shell
                list(command),
                cwd=directory,
                env=dict(environment),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if keep == "end" else stderr,
                start_new_session=True,
            ) as process,
            orphans.ended_with_this_process(process.pid),
        ):
            try:
                output, cut, late = _read(process, until, most, keep)
                # Its output may have ended before it does.
                if not late and not (cut and keep == "start"):
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(max(0.0, until - time.monotonic()))
                code = process.poll()
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
        stderr.seek(0)
        return Finished(
            code=code,
            output=output,
            errors=stderr.read(_CHUNK),
            cut=cut,
            late=late or (code is None and not cut),
        )


def _read(
    process: subprocess.Popen[bytes], until: float, most: int, keep: Literal["start", "end"]
) -> tuple[bytes, bool, bool]:
    """Read what it says; give what is kept, whether that is not all, and whether the time was over first."""
    pipe = process.stdout
    assert pipe is not None  # noqa: S101 - it was asked for
    kept, cut = bytearray(), False
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return bytes(kept), cut, True
            has_ended = process.poll() is not None
            if not selector.select(0 if has_ended else min(left, _LOOK_AGAIN)):
                # One that it left in the background may hold the pipe for ever: nobody waits for that.
                if has_ended:
                    return bytes(kept), cut, False
                continue
            chunk = os.read(pipe.fileno(), _CHUNK)
            if not chunk:
                return bytes(kept), cut, False
            kept += chunk
            if len(kept) > most:
                cut = True
                if keep == "start":
                    return bytes(kept[:most]), cut, False
                del kept[:-most]
