"""Report on a commit: its state in git, and the result of the operator's check.

The check runs in a copy of the commit that is deleted afterwards, so it neither sees nor touches the work tree. Its
environment contains only a search path, so that code written by an agent gets no secrets of the server.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

import toolbelt
from toolbelt.plugins.builtin.self_evolution import commits, git, processes, settings

MAX_OUTPUT = 8_000
MAX_COPY_BYTES = 500_000_000


def report(
    repository: git.Repository, configured: settings.Settings, revision: str, *, run: bool
) -> dict[str, Any]:
    """Return the state of the commit; ``run`` runs the operator's check on it."""
    commit = commits.resolve(repository, revision)
    [answer] = list[dict[str, Any]](commits.log(repository, commit, 1))
    base = commits.find(repository, configured.base)
    if base is not None:
        behind, ahead = repository.text(
            "rev-list", "--left-right", "--count", f"{base}...{commit}", "--"
        ).split()
        counts = {"ahead": int(ahead), "behind": int(behind), "merged": ahead == "0"}
        answer |= {"base": configured.base, **counts}
    answer["pushed"] = commits.find(repository, f"refs/remotes/{configured.remote}/{revision}") == commit
    if not configured.check_command:
        answer["check"] = None
        answer["note"] = "The operator has not configured a check command, so this is only the state in git."
    elif run:
        answer["check"] = _check(repository, configured, commit)
    return answer


def _check(repository: git.Repository, configured: settings.Settings, commit: str) -> dict[str, Any]:
    if sum(entry.size for entry in commits.entries(repository, commit, recursive=True)) > MAX_COPY_BYTES:
        raise toolbelt.ToolError(
            f"The commit is too large to check: it has more than {MAX_COPY_BYTES} bytes."
        )
    with tempfile.TemporaryDirectory(prefix="toolbelt-check-", ignore_cleanup_errors=True) as directory:
        copy, home = os.path.join(directory, "copy"), os.path.join(directory, "home")
        os.mkdir(copy)
        os.mkdir(home)
        # Our own bare directory has no filters, so only bytes are written.
        index = {"GIT_INDEX_FILE": os.path.join(directory, "index"), "GIT_WORK_TREE": copy}
        repository.objects("read-tree", commit, environment=index)
        repository.objects("checkout-index", "--all", "--force", environment=index)
        environment = {"HOME": home, "TMPDIR": home, "LC_ALL": "C.UTF-8", "CI": "true"}
        begun = time.monotonic()
        try:
            finished = processes.run(
                configured.check_command,
                directory=copy,
                environment={"PATH": os.environ.get("PATH", os.defpath), **environment},
                seconds=configured.check_seconds,
                max_bytes=git.MAX_BYTES,
                errors_in_output=True,
            )
        except OSError as error:
            raise toolbelt.ToolError(
                f"The operator's check {configured.check_command[0]!r} cannot be started: {error.strerror}."
            ) from error
    answer: dict[str, Any] = {
        "passed": finished.code == 0,
        "exit_code": finished.code,
        "seconds": round(time.monotonic() - begun, 1),
        "output": finished.output[-MAX_OUTPUT:].decode(errors="replace"),
    }
    if finished.is_timed_out:
        answer["note"] = f"It was stopped after {configured.check_seconds} seconds."
    elif finished.code is None:
        answer["note"] = f"It was stopped after {git.MAX_BYTES} bytes of output."
    elif len(finished.output) > MAX_OUTPUT:
        answer["note"] = "Only the end of its output is shown."
    return answer
