"""Running of commands that end with an exit code."""

from __future__ import annotations

import io

from django.core.management import call_command


def run(*words: str) -> tuple[str, str, int]:
    """Run a command; return what it wrote to its output and to standard error, and its exit code."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command(*words, stdout=out, stderr=err)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return out.getvalue(), err.getvalue(), code
