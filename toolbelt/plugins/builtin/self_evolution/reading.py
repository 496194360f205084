"""What does a commit hold? Its files and directories, read as objects, at most so large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import toolbelt
from toolbelt.plugins.builtin.self_evolution import git, names

LARGEST = 1_000_000

Kind = Literal["file", "directory", "link", "submodule"]

_KINDS: dict[str, Kind] = {"040000": "directory", "120000": "link", "160000": "submodule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a commit's tree; ``mode`` is git's (100644, or 100755 for a program)."""

    path: str
    mode: str
    name: str
    size: int

    @property
    def kind(self) -> Kind:
        return _KINDS.get(self.mode, "file")


def commit(repository: git.Git, revision: str) -> str:
    """Find the full name of the commit that a branch, tag or commit names now."""
    found = find(repository, names.revision(revision))
    if found is None:
        raise toolbelt.ToolError(f"There is no commit {revision!r} in this repository.")
    return found


def find(repository: git.Git, revision: str) -> str | None:
    """Find a commit's full name; None if there is none. ``revision`` is one that was checked, or a full ref."""
    asked = repository.refs(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", expected=(0, 1, 128)
    )
    return asked.output.decode().strip() or None if asked.code == 0 else None


def entries(repository: git.Git, at: str, path: str, *, recursive: bool) -> list[Entry]:
    """List what is in a directory of the commit (empty path: its root), or all files below it."""
    arguments = ["ls-tree", "-z", "-l", "--full-tree", *(["-r"] if recursive else []), at, "--"]
    found = repository.objects(*arguments, *([f"{path}/"] if path else []))
    return _parsed(found.output, cut=found.cut)


def entry(repository: git.Git, at: str, path: str) -> Entry | None:
    """Find the entry of exactly this path."""
    found = _parsed(
        repository.objects("ls-tree", "-z", "-l", "--full-tree", at, "--", path).output, cut=False
    )
    return next((one for one in found if one.path == path), None)


def file(repository: git.Git, at: str, path: str) -> tuple[Entry, str]:
    """Read a text file of the commit."""
    found = entry(repository, at, path)
    if found is None:
        raise toolbelt.ToolError(f"There is no {path} in {at[:12]}.")
    if found.kind != "file":
        raise toolbelt.ToolError(f"{path} is a {found.kind}, not a file.")
    if found.size > LARGEST:
        raise toolbelt.ToolError(f"{path} has {found.size} bytes: at most {LARGEST} are read.")
    data = repository.objects("cat-file", "blob", found.name).output
    if b"\0" not in data:
        try:
            return found, data.decode()
        except UnicodeDecodeError:
            pass
    raise toolbelt.ToolError(
        f"{path} is not text in UTF-8: its {found.size} bytes are not shown or changed here."
    )


def _parsed(listing: bytes, *, cut: bool) -> list[Entry]:
    lines = listing.split(b"\0")
    # The last one is empty, or half a line where the listing was cut.
    del lines[-1]
    if cut:
        raise toolbelt.ToolError("That is more than can be listed at once: ask for a directory further down.")
    found = []
    for line in lines:
        facts, _, path = line.partition(b"\t")
        mode, _kind, name, size = facts.decode().split()
        # A name of bytes that are no text is shown as far as it is; none can be asked for by it.
        found.append(
            Entry(
                path=path.decode(errors="replace"),
                mode=mode,
                name=name,
                size=int(size) if size.isdigit() else 0,
            )
        )
    return found
