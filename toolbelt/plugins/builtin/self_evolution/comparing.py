"""What lies between two commits? The commits of the one that the other has not, and what they changed in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolbelt.plugins.builtin.self_evolution import git

MOST_COMMITS = 100
MOST_FILES = 500
LONGEST_DIFF = 100_000


def run(repository: git.Git, base: str, head: str, paths: Sequence[str]) -> dict[str, Any]:
    """Compare two commits by their full names, from where they parted; ``paths`` narrow the files."""
    parted = repository.objects("merge-base", base, head, expected=(0, 1)).output.decode().split()
    start = parted[0] if parted else base
    listed = repository.objects(
        *("log", "-z", f"--max-count={MOST_COMMITS + 1}", "--no-show-signature", "--no-color"),
        *("--format=%H%x1f%an%x1f%aI%x1f%s", f"{base}..{head}", "--"),
    )
    commits = [
        dict(zip(("commit", "author", "date", "subject"), line.split("\x1f"), strict=False))
        for line in listed.output.decode(errors="replace").split("\0")
        if line
    ]
    arguments = (
        "-r",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        start,
        head,
        "--",
        *paths,
    )
    counted = repository.objects("diff-tree", "-z", "--numstat", *arguments)
    files = [_counts(line) for line in counted.output.decode(errors="replace").split("\0") if line]
    diff = repository.objects("diff-tree", "-p", *arguments).output.decode(errors="replace")
    answer: dict[str, Any] = {
        "base": base,
        "head": head,
        "commits": commits[:MOST_COMMITS],
        "files": files[:MOST_FILES],
        "file_count": len(files),
        "diff": diff[:LONGEST_DIFF],
    }
    if len(commits) > MOST_COMMITS:
        answer["more_commits"] = True
    if len(diff) > LONGEST_DIFF:
        answer["note"] = f"The diff has {len(diff)} characters: name paths to see the rest."
    return answer


def _counts(line: str) -> dict[str, Any]:
    added, removed, path = line.split("\t", 2)
    if added == "-":
        return {"path": path, "binary": True}
    return {"path": path, "added": int(added), "removed": int(removed)}
