"""File access that cannot leave the root, whatever happens on the disk meanwhile.

The root is opened once, and everything else is opened from there, one name at a time, relative to the directory before
it (openat) and never through a link (O_NOFOLLOW). The call that checks a name also opens it, so a directory cannot be
swapped for a link in between. Links are never followed, even if they stay inside. A hard link is indistinguishable from
the file itself, which may have another name outside, so files with several names are not read unless the operator
allows it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import toolbelt
from toolbelt.plugins.builtin.files import paths

Kind = Literal["file", "directory", "link", "other"]

# Windows has none of these: there, available() returns False, and nothing else here runs.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
# A pipe in a file's place must not block, and a terminal must not become the controlling terminal.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _NO_LINK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_CHUNK = 1 << 16
MAX_DIRECTORY_ENTRIES = 20_000
# While a file is being written, it briefly has two names, or none: check again this often, this far apart.
_ATTEMPTS, _RETRY_SECONDS = 5, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a directory."""

    name: str
    kind: Kind
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """A file's bytes, and a mark that changes when the file does."""

    data: bytes
    mark: tuple[int, ...]


def available() -> bool:
    """Return whether this system can open files relative to a directory."""
    needed = {os.open, os.mkdir, os.unlink, os.link, os.rename, os.stat}
    return (
        bool(getattr(os, "O_NOFOLLOW", 0)) and needed <= os.supports_dir_fd and os.scandir in os.supports_fd
    )


class Root:
    """A directory and everything below it, open until :meth:`close`.

    ``hard_links``: also read files that have several names (hard links).
    """

    def __init__(self, path: str, *, hard_links: bool = False) -> None:
        self.hard_links = hard_links
        # The operator's own path may contain links: only what is below it is not trusted.
        self._descriptor: int | None = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the root. Running calls keep the files that they opened; later calls are refused."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    @contextlib.contextmanager
    def directory(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of the directory; ``make`` creates missing directories on the way."""
        descriptor = self._own()
        try:
            for depth, part in enumerate(parts, 1):
                try:
                    if make:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(part, dir_fd=descriptor)
                    below = os.open(part, _DIRECTORY, dir_fd=descriptor)
                except OSError as error:
                    raise _to_tool_error(error, parts[:depth], descriptor, part) from error
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self, parts: tuple[str, ...], max_bytes: int) -> Contents:
        """Return the contents of a regular file of at most ``max_bytes`` bytes."""
        with self.directory(parts[:-1]) as parent:
            return read_in(parent, parts, max_bytes, hard_links=self.hard_links)

    def write(
        self, parts: tuple[str, ...], data: bytes, *, was: tuple[int, ...] | None, replace: bool
    ) -> bool:
        """Write a file atomically, so that readers see either the old or the new contents. Return whether it is new.

        ``was`` is the mark of the contents that ``data`` is based on. Raise ToolError if the file has changed since,
        or, without ``replace``, if it exists.
        """
        with self.directory(parts[:-1], make=was is None) as parent:
            name = parts[-1]
            status = _status(parent, name)
            if status is not None and not stat.S_ISREG(status.st_mode):
                raise toolbelt.ToolError(
                    f"{paths.shown(parts)} is not a regular file, so it cannot be written."
                )
            if was is not None and (status is None or _mark(status) != was):
                raise toolbelt.ToolError(f"{paths.shown(parts)} was changed in the meantime. Read it again.")
            if status is not None and not replace:
                raise toolbelt.ToolError(
                    f"{paths.shown(parts)} already exists. Set overwrite to true to replace it."
                )
            temporary = f".toolbelt-{secrets.token_hex(8)}.tmp"
            try:
                _write_new(parent, temporary, data, stat.S_IMODE(status.st_mode) & 0o777 if status else None)
                if replace:
                    os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
                else:
                    # Unlike a rename, a link never replaces a file that was created in the meantime.
                    os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
            except OSError as error:
                raise _to_tool_error(error, parts, parent, name) from error
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
            return status is None

    def _own(self) -> int:
        """Return a descriptor of the root, which the caller closes.

        Under the lock, because the number of a closed descriptor may be reused for another file immediately.
        """
        with self._lock:
            if self._descriptor is None:
                raise toolbelt.ToolError(
                    "The files are closed because the server is stopping. Try again later."
                )
            return os.dup(self._descriptor)


def read_in(
    parent: int, parts: tuple[str, ...], max_bytes: int, *, hard_links: bool, attempts: int = _ATTEMPTS
) -> Contents:
    """Return the contents of the file at the end of ``parts``, in its open directory.

    ``attempts``: how often to check if the file has several names at the moment.
    """
    name = parts[-1]
    before = _status(parent, name)
    # Opening a device can have side effects, so check the kind of file first.
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise toolbelt.ToolError(f"{paths.shown(parts)} is {_kind_in_words(before)}, not a regular file.")
    try:
        descriptor = os.open(name, _FILE, dir_fd=parent)
    except OSError as error:
        raise _to_tool_error(error, parts, parent, name) from error
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise toolbelt.ToolError(f"{paths.shown(parts)} is {_kind_in_words(status)}, not a regular file.")
        if not hard_links and _has_other_names(descriptor, parent, name, attempts):
            raise toolbelt.ToolError(
                f"{paths.shown(parts)} has several names (hard links) and may be a file from elsewhere, so it is not"
                " read. An operator can allow it with hard_links."
            )
        # A file may grow beyond its reported size: read one byte more than allowed to notice.
        data = bytearray()
        while len(data) <= max_bytes and (chunk := file.read(min(_CHUNK, max_bytes + 1 - len(data)))):
            data += chunk
    if status.st_size > max_bytes or len(data) > max_bytes:
        size = max(status.st_size, len(data))
        raise toolbelt.ToolError(f"{paths.shown(parts)} has {size} bytes; at most {max_bytes} are allowed.")
    return Contents(data=bytes(data), mark=_mark(status))


def entries(descriptor: int) -> tuple[list[Entry], bool]:
    """Return the entries of an open directory, sorted by name, and whether they are complete."""
    directory_entries: list[Entry] = []
    with os.scandir(descriptor) as listing:
        for item in listing:
            if len(directory_entries) == MAX_DIRECTORY_ENTRIES:
                return sorted(directory_entries, key=lambda entry: entry.name), False
            status = _status(descriptor, item.name)
            if status is not None:
                directory_entries.append(Entry(name=item.name, kind=_kind(status), size=status.st_size))
    return sorted(directory_entries, key=lambda entry: entry.name), True


def enter(parent: int, name: str) -> int | None:
    """Open a directory inside an open directory. Return None if it is not a directory (anymore)."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError:
        return None


def _write_new(parent: int, name: str, data: bytes, mode: int | None) -> None:
    descriptor = os.open(name, _NEW, 0o666, dir_fd=parent)
    with open(descriptor, "wb") as file:
        if mode is not None:
            os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _status(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None


def _has_other_names(descriptor: int, parent: int, name: str, attempts: int) -> bool:
    """Return whether the open file has another name than this one."""
    for attempt in range(attempts):
        if attempt:
            time.sleep(_RETRY_SECONDS)
        # In this order, so that a name that is removed in between is noticed.
        status, named_status = os.fstat(descriptor), _status(parent, name)
        is_this = named_status is not None and os.path.samestat(status, named_status)
        if status.st_nlink <= is_this:
            return False
    return True


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _kind(status: os.stat_result) -> Kind:
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def _kind_in_words(status: os.stat_result) -> str:
    words = {
        "directory": "a directory",
        "link": "a link",
        "file": "a file",
        "other": "a device, pipe or socket",
    }
    return words[_kind(status)]


def _to_tool_error(error: OSError, parts: tuple[str, ...], parent: int, name: str) -> toolbelt.ToolError:
    """Return the error for the model, which does not reveal where on the disk the root is."""
    where = paths.shown(parts)
    status = _status(parent, name)
    if status is not None and stat.S_ISLNK(status.st_mode):
        return toolbelt.ToolError(f"{where} is a link, and links are not followed.")
    if isinstance(error, FileNotFoundError):
        return toolbelt.ToolError(f"{where} does not exist.")
    if isinstance(error, FileExistsError):
        return toolbelt.ToolError(f"{where} already exists. Set overwrite to true to replace it.")
    if isinstance(error, PermissionError):
        return toolbelt.ToolError(f"The server has no permission to open {where}.")
    if isinstance(error, NotADirectoryError):
        return toolbelt.ToolError(f"{where} is not a directory.")
    if isinstance(error, IsADirectoryError):
        return toolbelt.ToolError(f"{where} is a directory.")
    return toolbelt.ToolError(f"{where} cannot be used: {error.strerror or 'the disk refused'}.")
