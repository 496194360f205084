"""How does a commit stand? What git knows of it, and what the operator's own check says.

The check runs in a copy of the commit that is thrown away, so it neither sees nor touches the work tree, and with no
more around it than a search path: no secret of the server's environment is handed to what an agent wrote.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

import toolbelt
from toolbelt.plugins.builtin.self_evolution import git, processes, reading, settings

MOST_SAID = 8_000
MOST_BYTES = 500_000_000


def run(repository: git.Git, configured: settings.Settings, revision: str, *, check: bool) -> dict[str, Any]:
    """Say how the commit stands; ``check`` runs the operator's command on it."""
    commit = reading.commit(repository, revision)
    shown = repository.objects(
        *(
            "log",
            "--max-count=1",
            "--no-show-signature",
            "--no-color",
            "--format=%an%x1f%aI%x1f%s",
            commit,
            "--",
        )
    ).output.decode(errors="replace")
    author, date, subject = shown.strip("\n").split("\x1f", 2)
    answer: dict[str, Any] = {"commit": commit, "author": author, "date": date, "subject": subject}
    base = reading.find(repository, configured.base)
    if base is not None:
        counted = repository.objects("rev-list", "--left-right", "--count", f"{base}...{commit}", "--")
        behind, ahead = counted.output.decode().split()
        answer |= {
            "base": configured.base,
            "ahead": int(ahead),
            "behind": int(behind),
            "merged": ahead == "0",
        }
    sent = reading.find(repository, f"refs/remotes/{configured.remote}/{revision}")
    answer["pushed"] = sent == commit
    if not configured.check_command:
        answer["check"] = None
        answer["note"] = "The operator has set no check command: this is what git knows."
    elif check:
        answer["check"] = _checked(repository, configured, commit)
    return answer


def _checked(repository: git.Git, configured: settings.Settings, commit: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="toolbelt-check-", ignore_cleanup_errors=True) as directory:
        copy, home = os.path.join(directory, "copy"), os.path.join(directory, "home")
        os.mkdir(copy)
        os.mkdir(home)
        _copy(repository, commit, copy, os.path.join(directory, "index"))
        begun = time.monotonic()
        try:
            found = processes.run(
                configured.check_command,
                directory=copy,
                environment={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "HOME": home,
                    "TMPDIR": home,
                    "LC_ALL": "C.UTF-8",
                    "CI": "true",
                },
                seconds=configured.check_seconds,
                most=MOST_SAID,
                keep="end",
            )
        except OSError as error:
            raise toolbelt.ToolError(
                f"The operator's check {configured.check_command[0]!r} does not start: {error.strerror}."
            ) from error
    answer: dict[str, Any] = {
        "passed": found.code == 0 and not found.late,
        "exit_code": found.code,
        "seconds": round(time.monotonic() - begun, 1),
        "output": found.output.decode(errors="replace"),
    }
    if found.late:
        answer["note"] = f"It was stopped after {configured.check_seconds} seconds."
    elif found.cut:
        answer["note"] = "Only the end of what it said is shown."
    return answer


def _copy(repository: git.Git, commit: str, directory: str, index: str) -> None:
    """Write the commit's files out. Our own bare directory has no filters, so only bytes are written."""
    entries = reading.entries(repository, commit, "", recursive=True)
    if sum(entry.size for entry in entries) > MOST_BYTES:
        raise toolbelt.ToolError(
            f"The commit has more than {MOST_BYTES} bytes, too many for a copy to check."
        )
    around = {"GIT_INDEX_FILE": index, "GIT_WORK_TREE": directory}
    repository.objects("read-tree", commit, more=around)
    repository.objects("checkout-index", "--all", "--force", more=around)
