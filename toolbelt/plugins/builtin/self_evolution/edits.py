"""What do the files look like after these changes? Worked out in full before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import toolbelt
from toolbelt.plugins.builtin.self_evolution import git, names, reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file as it shall be; ``data`` is None where it shall be gone."""

    path: str
    mode: str
    data: bytes | None


def patched(
    repository: git.Git, at: str, patches: Sequence[Mapping[str, Any]], protected: Sequence[str]
) -> list[Change]:
    """Apply exact replacements in order; each old text must stand there exactly ``count`` times (once)."""
    modes: dict[str, str] = {}
    texts: dict[str, str] = {}
    for patch in patches:
        path = names.path_to_write(patch["path"], protected)
        if path not in texts:
            entry, texts[path] = reading.file(repository, at, path)
            modes[path] = entry.mode
        texts[path] = _replaced(texts[path], patch["old"], patch["new"], patch.get("count", 1), path)
    return [Change(path=path, mode=modes[path], data=_encoded(text, path)) for path, text in texts.items()]


def replaced(
    repository: git.Git, at: str, files: Sequence[Mapping[str, Any]], protected: Sequence[str]
) -> list[Change]:
    """Take whole files as they shall be, new ones among them, or gone."""
    changes: dict[str, Change] = {}
    for file in files:
        path = names.path_to_write(file["path"], protected)
        if path in changes:
            raise toolbelt.ToolError(f"{path} is named twice.")
        deleted = file.get("delete", False)
        if deleted == ("content" in file):
            raise toolbelt.ToolError(f"Give {path} either its content or delete: true.")
        found = reading.entry(repository, at, path)
        if found is not None and found.kind != "file":
            raise toolbelt.ToolError(f"{path} is a {found.kind}, not a file.")
        if found is None:
            if deleted:
                raise toolbelt.ToolError(f"There is no {path} to delete.")
            _refuse_below_a_file(repository, at, path)
        data = None if deleted else _encoded(file["content"], path)
        changes[path] = Change(path=path, mode=found.mode if found else "100644", data=data)
    return list(changes.values())


def tree(repository: git.Git, at: str, changes: Sequence[Change], index: str) -> str:
    """Make the tree that the changes lead to, in an index file of their own, and give its name."""
    around = {"GIT_INDEX_FILE": index}
    repository.objects("read-tree", at, more=around)
    lines = []
    for change in changes:
        if change.data is None:
            lines.append(f"0 {'0' * len(at)}\t{change.path}\0")
        else:
            blob = repository.objects("hash-object", "-w", "-t", "blob", "--stdin", given=change.data)
            lines.append(f"{change.mode} {blob.output.decode().strip()}\t{change.path}\0")
    repository.objects("update-index", "-z", "--index-info", given="".join(lines).encode(), more=around)
    return repository.objects("write-tree", more=around).output.decode().strip()


def _replaced(text: str, old: str, new: str, count: int, path: str) -> str:
    if old == new:
        raise toolbelt.ToolError(f"Old and new are the same text in a patch of {path}. Nothing was changed.")
    found = text.count(old)
    if found != count:
        raise toolbelt.ToolError(
            f"{path} holds the old text {found} times, not {count}: copy it to the character, with enough "
            "around it to be unique. Nothing was changed."
        )
    return text.replace(old, new)


def _encoded(text: str, path: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise toolbelt.ToolError(f"{path} would hold half a character, which UTF-8 cannot write.") from None
    if len(data) > reading.LARGEST:
        raise toolbelt.ToolError(
            f"{path} would have {len(data)} bytes: at most {reading.LARGEST} are written."
        )
    return data


def _refuse_below_a_file(repository: git.Git, at: str, path: str) -> None:
    parts = path.split("/")
    for depth in range(1, len(parts)):
        above = reading.entry(repository, at, "/".join(parts[:depth]))
        if above is None:
            return
        if above.kind != "directory":
            raise toolbelt.ToolError(f"{above.path} is a {above.kind}: nothing can be below it.")
