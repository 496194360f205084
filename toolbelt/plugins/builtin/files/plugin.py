"""The files plugin: tools that read, list, search, write and patch the files below one directory."""

from __future__ import annotations

import os
import threading
from typing import Annotated, Any

from pydantic import Field

from toolbelt import FunctionPlugin, RuntimeAPI, ToolError, tool
from toolbelt.plugins import config, plain_text
from toolbelt.plugins.builtin.files import confined, paths, searching, settings, toolkit

MAX_ENTRIES = 1_000

_READS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_WRITES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}

FilePath = Annotated[str, Field(min_length=1, max_length=paths.MAX_LENGTH)]
AnyPath = Annotated[str, Field(max_length=paths.MAX_LENGTH)]
Text = Annotated[str, Field(max_length=2_000_000)]


class Files(FunctionPlugin):
    """Text files within one directory. Config: the fields of ``settings.Settings``."""

    def __init__(self) -> None:
        super().__init__(
            name="files",
            namespace="files",
            title="Files",
            description="Reads and writes text files within one directory. Requires config.root.",
            category="filesystem",
            functions=[self.read, self.list_directory, self.search, self.write, self.patch],
            toolkits=[toolkit.Reading(), toolkit.Writing()],
        )
        # One write at a time, so that concurrent patches of a file are not lost.
        self._writing = threading.Lock()

    def initialize(self, runtime: RuntimeAPI) -> None:
        if not confined.available():
            raise config.ConfigError(
                "files requires an operating system that opens files relative to a directory, such as Linux."
            )
        super().initialize(runtime)
        self._settings = config.read(settings.Settings, "files", runtime.config)
        self._root = confined.Root(self._settings.root, hard_links=self._settings.hard_links)

    def shutdown(self) -> None:
        self._root.close()

    @tool(title="Read a file", annotations=_READS)
    def read(
        self,
        path: FilePath,
        first_line: Annotated[int, Field(ge=1, le=10_000_000)] = 1,
        lines: Annotated[int, Field(ge=1, le=2_000)] = 2_000,
    ) -> dict[str, Any]:
        """Read a UTF-8 text file, completely or a range of its lines.

        Args:
            path: The file's path, relative to the root.
            first_line: The first line to return.
            lines: The maximum number of lines.
        """
        parts = paths.file_parts(path)
        text = plain_text.decode(
            self._root.read(parts, self._settings.max_file_bytes).data, paths.shown(parts)
        )
        excerpt = plain_text.lines(text, first_line, lines)
        answer: dict[str, Any] = {
            "path": paths.shown(parts),
            "content": excerpt.text,
            "first_line": excerpt.first,
            "last_line": excerpt.last,
            "line_count": excerpt.count,
        }
        if excerpt.is_truncated:
            answer["note"] = f"Line {excerpt.first} is too long. Only its beginning is shown."
        if excerpt.last < excerpt.count:
            answer["next_line"] = excerpt.last + 1
        return answer

    @tool(name="list", title="List a directory", annotations=_READS)
    def list_directory(
        self, path: AnyPath = "", depth: Annotated[int, Field(ge=1, le=10)] = 1
    ) -> dict[str, Any]:
        """List the entries of a directory with their kind and size, sorted by name.

        Args:
            path: The directory's path, relative to the root. Empty for the root.
            depth: The number of directory levels to list.
        """
        parts = paths.parts(path)
        entries: list[dict[str, Any]] = []
        with self._root.directory(parts) as directory:
            complete = _list_into(entries, os.dup(directory), (), depth)
        return {"path": paths.shown(parts), "entries": entries, "complete": complete}

    @tool(title="Search files", annotations=_READS)
    def search(
        self,
        query: Annotated[str, Field(min_length=1, max_length=1_000)],
        regex: bool = False,
        ignore_case: bool = False,
        path: AnyPath = "",
        glob: Annotated[str, Field(max_length=200)] = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
    ) -> dict[str, Any]:
        """Find the lines that contain a text, in the text files below a directory.

        Args:
            query: The text to find, or an RE2 expression if regex is true. Each line is searched separately.
            regex: Whether the query is a regular expression.
            ignore_case: Whether to ignore case.
            path: The path of a directory or file, relative to the root. Empty for the root.
            glob: Only search files whose name or path matches, such as *.py or src/*.md.
            limit: The maximum number of matching lines.
        """
        search = searching.run(
            self._root,
            paths.parts(path),
            plain_text.search_pattern(query, regex=regex, ignore_case=ignore_case),
            glob=glob,
            largest=self._settings.max_file_bytes,
            max_matches=limit,
        )
        answer: dict[str, Any] = {
            "matches": search.matches,
            "files_searched": search.files,
            "complete": not search.stopped_by,
        }
        if search.stopped_by:
            answer["stopped_by"] = search.stopped_by
        if search.skipped:
            answer["files_passed_over"] = search.skipped
        return answer

    @tool(title="Write a file", annotations=_WRITES)
    def write(self, path: FilePath, content: Text, overwrite: bool = False) -> dict[str, Any]:
        """Write a text file. Missing directories are created. An existing file is replaced only if overwrite is true.

        Args:
            path: The file's path, relative to the root.
            content: The complete text.
            overwrite: Whether to replace an existing file.
        """
        parts = paths.file_parts(path)
        data = self._checked(parts, content)
        with self._writing:
            is_new = self._root.write(parts, data, was=None, replace=overwrite)
        return {"path": paths.shown(parts), "created": is_new, "bytes": len(data)}

    @tool(title="Patch a file", annotations=_WRITES)
    def patch(
        self,
        path: FilePath,
        old: Annotated[Text, Field(min_length=1)],
        new: Text,
        count: Annotated[int, Field(ge=1, le=10_000)] = 1,
    ) -> dict[str, Any]:
        """Replace an exact text in a file. It must occur exactly as often as count says: once by default.

        Args:
            path: The file's path, relative to the root.
            old: The exact text to replace, with enough context to be unique.
            new: The new text.
            count: The number of occurrences of the old text. All of them are replaced.
        """
        parts = paths.file_parts(path)
        shown_path = paths.shown(parts)
        with self._writing:
            before = self._root.read(parts, self._settings.max_file_bytes)
            after = plain_text.replace(
                plain_text.decode(before.data, shown_path), old, new, count, shown_path
            )
            data = self._checked(parts, after)
            self._root.write(parts, data, was=before.mark, replace=True)
        return {"path": shown_path, "replaced": count, "bytes": len(data)}

    def _checked(self, parts: tuple[str, ...], text: str) -> bytes:
        """Return the bytes to write. Raise ToolError if the file may not be written or would be too large."""
        paths.refuse_repository(parts)
        data = text.encode()
        if len(data) > self._settings.max_file_bytes:
            raise ToolError(
                f"The file would have {len(data)} bytes; at most {self._settings.max_file_bytes} are allowed."
            )
        return data


def _list_into(entries: list[dict[str, Any]], directory: int, below: tuple[str, ...], depth: int) -> bool:
    """Append the entries of an open directory, and close it. Return whether all of them fit."""
    try:
        directory_entries, complete = confined.entries(directory)
        for entry in directory_entries:
            if len(entries) >= MAX_ENTRIES:
                return False
            size = {"bytes": entry.size} if entry.kind == "file" else {}
            entries.append({"path": paths.readable((*below, entry.name)), "kind": entry.kind, **size})
            if entry.kind == "directory" and depth > 1:
                inside = confined.enter(directory, entry.name)
                if inside is not None:
                    complete = _list_into(entries, inside, (*below, entry.name), depth - 1) and complete
        return complete
    finally:
        os.close(directory)
