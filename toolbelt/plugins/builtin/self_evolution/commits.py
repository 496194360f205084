"""Read commits: their files and directories, the lines that match a search, and the difference of two."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import toolbelt
from toolbelt.plugins import plain_text
from toolbelt.plugins.builtin.self_evolution import git, names

MAX_FILE_BYTES = 1_000_000
MAX_SEARCHED_FILES = 20_000
MAX_SEARCHED_BYTES = 50_000_000
MAX_SEARCH_SECONDS = 15.0
MAX_COMMITS = 100
MAX_CHANGED_FILES = 500
MAX_DIFF_LENGTH = 100_000

_KINDS = {"040000": "directory", "120000": "link", "160000": "submodule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a commit's tree; ``mode`` is git's (100644, or 100755 for a program), ``name`` the object's."""

    path: str
    mode: str
    name: str
    size: int

    @property
    def kind(self) -> str:
        return _KINDS.get(self.mode, "file")


def resolve(repository: git.Repository, revision: str) -> str:
    """Return the full name of the commit that a branch, tag or commit names. Raise ToolError if there is none."""
    if not names.is_revision(revision):
        raise toolbelt.ToolError(
            f"{revision!r} is not a commit. Name a branch, a tag or a commit, such as main or main~1."
        )
    commit = find(repository, revision)
    if commit is None:
        raise toolbelt.ToolError(f"There is no commit {revision!r} in this repository.")
    return commit


def find(repository: git.Repository, revision: str) -> str | None:
    """Return a commit's full name, or None. ``revision`` is a name that was checked, or a full ref."""
    arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return repository.refs(*arguments, expected=(0, 1, 128)).output.decode().strip() or None


def log(repository: git.Repository, commits: str, max_count: int) -> list[dict[str, str]]:
    """Return the commits of a revision or range, the newest first."""
    output = repository.text(
        *("log", "-z", f"--max-count={max_count}", "--no-show-signature", "--no-color"),
        *("--format=%H%x1f%an%x1f%aI%x1f%s", commits, "--"),
    )
    fields = ("commit", "author", "date", "subject")
    return [dict(zip(fields, line.split("\x1f"), strict=False)) for line in output.split("\0") if line]


def entries(
    repository: git.Repository, commit: str, path: str = "", *, recursive: bool = False
) -> list[Entry]:
    """Return the entries of a directory of the commit (an empty path: its root), or all files below it."""
    options = ["-r"] if recursive else []
    return _list(repository, *options, commit, "--", *([f"{path}/"] if path else []))


def entry(repository: git.Repository, commit: str, path: str) -> Entry | None:
    """Return the entry of exactly this path, or None."""
    return next(
        (candidate for candidate in _list(repository, commit, "--", path) if candidate.path == path), None
    )


def read_text(repository: git.Repository, commit: str, path: str) -> tuple[Entry, str]:
    """Return a text file of the commit. Raise ToolError if it is not one, or too large."""
    file = entry(repository, commit, path)
    if file is None:
        raise toolbelt.ToolError(f"There is no {path} in {commit[:12]}.")
    if file.kind != "file":
        raise toolbelt.ToolError(f"{path} is a {file.kind}, not a file.")
    if file.size > MAX_FILE_BYTES:
        raise toolbelt.ToolError(f"{path} has {file.size} bytes; at most {MAX_FILE_BYTES} can be read.")
    return file, plain_text.decode(repository.objects("cat-file", "blob", file.name).output, path)


def search(
    repository: git.Repository, commit: str, path: str, pattern: Any, max_matches: int
) -> dict[str, Any]:
    """Search the text files of the commit below the path; large files are skipped."""
    until = time.monotonic() + MAX_SEARCH_SECONDS
    files, total, stopped_by = list[Entry](), 0, ""
    for candidate in entries(repository, commit, path, recursive=True):
        if candidate.kind != "file" or candidate.size > MAX_FILE_BYTES:
            continue
        if len(files) == MAX_SEARCHED_FILES or total + candidate.size > MAX_SEARCHED_BYTES:
            stopped_by = f"{len(files)} files with {total} bytes"
            break
        files.append(candidate)
        total += candidate.size
    matches: list[dict[str, Any]] = []
    searched = 0
    for file, data in _contents(repository, files):
        if time.monotonic() > until:
            stopped_by = f"{MAX_SEARCH_SECONDS:.0f} seconds"
            break
        searched += 1
        if not plain_text.is_binary(data):
            lines = plain_text.matching_lines(data, pattern)
            matches += ({"path": file.path, "line": line, "text": text} for line, text in lines)
        if len(matches) >= max_matches:
            stopped_by = f"{max_matches} matches"
            break
    answer = {"commit": commit, "matches": matches[:max_matches], "files_searched": searched}
    return {**answer, "complete": not stopped_by, **({"stopped_by": stopped_by} if stopped_by else {})}


def compare(repository: git.Repository, base: str, head: str, paths: Sequence[str]) -> dict[str, Any]:
    """Return the commits that are in ``head`` but not in ``base``, and their changes; ``paths`` narrow the files."""
    merge_base = repository.objects("merge-base", base, head, expected=(0, 1)).output.decode().split()
    start = merge_base[0] if merge_base else base
    commits = log(repository, f"{base}..{head}", MAX_COMMITS + 1)
    changed = (
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
    files = repository.text("diff-tree", "-z", "--numstat", *changed).split("\0")
    diff = repository.objects("diff-tree", "-p", *changed).output.decode(errors="replace")
    counts = [_counts(line) for line in files if line]
    answer: dict[str, Any] = {
        "base": base,
        "head": head,
        "commits": commits[:MAX_COMMITS],
        "files": counts[:MAX_CHANGED_FILES],
        "file_count": len(counts),
        "diff": diff[:MAX_DIFF_LENGTH],
    }
    if len(commits) > MAX_COMMITS:
        answer["more_commits"] = True
    if len(diff) > MAX_DIFF_LENGTH:
        answer["note"] = f"The diff has {len(diff)} characters and is cut off. Use paths to see the rest."
    return answer


def _counts(line: str) -> dict[str, Any]:
    added, removed, path = line.split("\t", 2)
    if added == "-":
        return {"path": path, "binary": True}
    return {"path": path, "added": int(added), "removed": int(removed)}


def _list(repository: git.Repository, *arguments: str) -> list[Entry]:
    listing = repository.objects("ls-tree", "-z", "-l", "--full-tree", *arguments)
    if listing.is_truncated:
        raise toolbelt.ToolError("The list is too long. List a directory further down.")
    listed = []
    for line in filter(None, listing.output.split(b"\0")):
        facts, _, path = line.partition(b"\t")
        mode, _, name, size = facts.decode().split()
        # Bytes that are not text are replaced, so such a file cannot be read.
        listed.append(
            Entry(
                path=path.decode(errors="replace"),
                mode=mode,
                name=name,
                size=int(size) if size.isdigit() else 0,
            )
        )
    return listed


def _contents(repository: git.Repository, files: Sequence[Entry]) -> Iterator[tuple[Entry, bytes]]:
    """Yield the bytes of many files. For each name, git prints a line with the size, and then the bytes."""
    object_names = "".join(f"{file.name}\n" for file in files).encode()
    answer = repository.objects("cat-file", "--batch", stdin_data=object_names).output
    position = 0
    for file in files:
        header = answer.index(b"\n", position) + 1
        if answer[position:header].endswith(b" missing\n"):
            position = header
            continue
        yield file, answer[header : header + file.size]
        position = header + file.size + 1
