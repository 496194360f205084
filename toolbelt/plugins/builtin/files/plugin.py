"""What happens when a model reads, lists, searches, writes or patches a file?"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import toolbelt
from toolbelt.plugins.builtin.files import confined, declared, paths, searching, settings, text, toolkit


class Files(toolbelt.ToolPlugin):
    name = "files"
    namespace = "files"
    title = "Files"
    description = "Text files within one directory, which nothing can leave. Needs config.root."
    category = "filesystem"
    tools = declared.TOOLS
    toolkits = (toolkit.Reading(), toolkit.Writing())

    def __init__(self) -> None:
        self._settings: settings.Settings | None = None
        self._root: confined.Root | None = None
        # Writers here wait for each other, so that of two patches of one file none is lost.
        self._writing = threading.Lock()

    def initialize(self, runtime: toolbelt.RuntimeAPI) -> None:
        if not confined.available():
            raise settings.Unsound(
                "files needs a system that opens files relative to a directory, as Linux does."
            )
        self._settings = settings.read(runtime.config)
        self._root = confined.Root(self._settings.root, hard_links=self._settings.hard_links)

    def shutdown(self) -> None:
        if self._root is not None:
            self._root.close()
            self._root = None

    def execute(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Run one of the five; each gives the root, the limit on bytes and its arguments their meaning."""
        actions: dict[str, Callable[..., dict[str, Any]]] = {
            toolkit.READ: self._read,
            toolkit.LIST: self._list,
            toolkit.SEARCH: self._search,
            toolkit.WRITE: self._write,
            toolkit.PATCH: self._patch,
        }
        if tool_name not in actions:
            raise ValueError(f"files has no tool {tool_name!r}.")
        if self._root is None or self._settings is None:
            raise RuntimeError("files is not initialized.")
        return actions[tool_name](self._root, self._settings.largest_bytes, **args)

    def _read(
        self,
        root: confined.Root,
        largest: int,
        path: str,
        first_line: int = 1,
        lines: int = declared.MOST_LINES,
    ) -> dict[str, Any]:
        parts = paths.file_parts(path)
        found = text.lines(text.decode(root.read(parts, largest).data, paths.shown(parts)), first_line, lines)
        answer: dict[str, Any] = {
            "path": paths.shown(parts),
            "content": found.text,
            "first_line": found.first,
            "last_line": found.last,
            "line_count": found.count,
        }
        if found.cut:
            answer["note"] = f"Line {found.first} is too long: only its beginning is shown."
        if found.last < found.count:
            answer["next_line"] = found.last + 1
        return answer

    def _list(self, root: confined.Root, largest: int, path: str = "", depth: int = 1) -> dict[str, Any]:
        parts = paths.parts(path)
        found: list[dict[str, Any]] = []
        with root.directory(parts) as directory:
            complete = _listed(found, os.dup(directory), (), depth)
        return {"path": paths.shown(parts), "entries": found, "complete": complete}

    def _search(
        self,
        root: confined.Root,
        largest: int,
        query: str,
        regex: bool = False,
        ignore_case: bool = False,
        path: str = "",
        glob: str = "",
        limit: int = 50,
    ) -> dict[str, Any]:
        pattern = searching.compiled(query, regex=regex, ignore_case=ignore_case)
        found = searching.run(root, paths.parts(path), pattern, glob=glob, largest=largest, most=limit)
        answer: dict[str, Any] = {
            "matches": found.matches,
            "files_searched": found.files,
            "complete": not found.stopped_by,
        }
        if found.stopped_by:
            answer["stopped_by"] = found.stopped_by
        if found.skipped:
            answer["files_passed_over"] = found.skipped
        return answer

    def _write(
        self, root: confined.Root, largest: int, path: str, content: str, overwrite: bool = False
    ) -> dict[str, Any]:
        parts = paths.file_parts(path)
        data = _checked(parts, text.encode(content), largest)
        with self._writing:
            is_new = root.write(parts, data, was=None, replace=overwrite)
        return {"path": paths.shown(parts), "created": is_new, "bytes": len(data)}

    def _patch(
        self, root: confined.Root, largest: int, path: str, old: str, new: str, count: int = 1
    ) -> dict[str, Any]:
        parts = paths.file_parts(path)
        with self._writing:
            before = root.read(parts, largest)
            shown = paths.shown(parts)
            after = text.replaced(text.decode(before.data, shown), old, new, count, shown)
            data = _checked(parts, text.encode(after), largest)
            root.write(parts, data, was=before.mark, replace=True)
        return {"path": shown, "replaced": count, "bytes": len(data)}


def _checked(parts: tuple[str, ...], data: bytes, largest: int) -> bytes:
    """Refuse what may not be written, whatever else holds."""
    paths.refuse_repository(parts)
    if len(data) > largest:
        raise toolbelt.ToolError(f"That makes {len(data)} bytes: at most {largest} are written.")
    return data


def _listed(found: list[dict[str, Any]], directory: int, below: tuple[str, ...], depth: int) -> bool:
    """Add what is in the opened directory, and close it; say whether all of it found room."""
    try:
        entries, complete = confined.entries(directory)
        for entry in entries:
            if len(found) >= declared.MOST_ENTRIES:
                return False
            # A name of bytes that are no text is shown as far as it is; no path can name it.
            name = paths.shown((*below, entry.name)).encode(errors="replace").decode()
            size = {"bytes": entry.size} if entry.kind == "file" else {}
            found.append({"path": name, "kind": entry.kind, **size})
            if entry.kind == "directory" and depth > 1:
                inside = confined.enter(directory, entry.name)
                if inside is not None:
                    complete = _listed(found, inside, (*below, entry.name), depth - 1) and complete
        return complete
    finally:
        os.close(directory)
