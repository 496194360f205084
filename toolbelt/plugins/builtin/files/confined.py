"""How does nothing leave the root, whatever happens on the disk meanwhile?

The root is opened once, and all else is opened from there, one name at a time, relative to the directory before it
(openat) and never through a link (O_NOFOLLOW). A name is looked at by the same call that opens it, so there is
no moment between a check and a use in which a directory could be swapped for a link: who swaps it meets a refusal.
Links are not followed at all, even those that stay inside. A hard link cannot be told from the file itself, which may
have another name outside: so a file with several names is not read, unless the operator allows it.
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

# Windows has none of these: there, available() says no, and nothing else here runs.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
# A pipe that was put in a file's place must not make us wait, nor a terminal make itself ours.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _NO_LINK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_CHUNK = 1 << 16
MOST_READ_OF_A_DIRECTORY = 20_000
# A file that is written has two names for a moment, or none: how often, and how far apart, it is looked at again.
_LOOKS, _BETWEEN_LOOKS = 5, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a directory."""

    name: str
    kind: Kind
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a file held, and what tells whether it is still that very file."""

    data: bytes
    mark: tuple[int, ...]


def available() -> bool:
    """Say whether this system can do it at all."""
    needed = {os.open, os.mkdir, os.unlink, os.link, os.rename, os.stat}
    return (
        bool(getattr(os, "O_NOFOLLOW", 0)) and needed <= os.supports_dir_fd and os.scandir in os.supports_fd
    )


class Root:
    """One directory, and everything below it; open until :meth:`close`.

    ``hard_links``: files that have other names, here or elsewhere, are read, too.
    """

    def __init__(self, path: str, *, hard_links: bool = False) -> None:
        self.hard_links = hard_links
        # The operator's own path may lead through links: it is what is below that is not trusted.
        self._descriptor: int | None = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of the root. Calls under way keep what they opened; one that comes later is refused."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    @contextlib.contextmanager
    def directory(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """Give a descriptor of the directory; ``make`` makes those on the way that are missing."""
        descriptor = self._own()
        try:
            for depth, part in enumerate(parts, 1):
                try:
                    if make:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(part, dir_fd=descriptor)
                    below = os.open(part, _DIRECTORY, dir_fd=descriptor)
                except OSError as error:
                    raise _in_words(error, parts[:depth], descriptor, part) from error
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self, parts: tuple[str, ...], most: int) -> Contents:
        """Read a regular file of at most ``most`` bytes."""
        with self.directory(parts[:-1]) as parent:
            return read_in(parent, parts, most, hard_links=self.hard_links)

    def write(
        self, parts: tuple[str, ...], data: bytes, *, was: tuple[int, ...] | None, replace: bool
    ) -> bool:
        """Put a file there at once, whole: readers see what was, or what is. Say whether it is new.

        ``was`` is the mark of the contents that ``data`` was made from; a file that is not that one any more
        is left alone. Without ``replace``, so is any that is there.
        """
        with self.directory(parts[:-1], make=was is None) as parent:
            name = parts[-1]
            found = _status(parent, name)
            if found is not None and not stat.S_ISREG(found.st_mode):
                raise toolbelt.ToolError(f"{paths.shown(parts)} is not a regular file, and is left alone.")
            if was is not None and (found is None or _mark(found) != was):
                raise toolbelt.ToolError(f"{paths.shown(parts)} was changed in the meantime: read it again.")
            if found is not None and not replace:
                raise toolbelt.ToolError(
                    f"{paths.shown(parts)} is there already: say overwrite to replace it."
                )
            temporary = f".toolbelt-{secrets.token_hex(8)}.tmp"
            try:
                _write_new(parent, temporary, data, stat.S_IMODE(found.st_mode) & 0o777 if found else None)
                if replace:
                    os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
                else:
                    # Unlike a rename, a link never takes the place of what somebody put there a moment ago.
                    os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
            except OSError as error:
                raise _in_words(error, parts, parent, name) from error
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
            return found is None

    def _own(self) -> int:
        """Give a descriptor of the root that is the caller's to close.

        Under the lock: a number that was closed may stand for somebody else's file the moment after.
        """
        with self._lock:
            if self._descriptor is None:
                raise toolbelt.ToolError("The files are not open any more: the server is stopping.")
            return os.dup(self._descriptor)


def read_in(
    parent: int, parts: tuple[str, ...], most: int, *, hard_links: bool, looks: int = _LOOKS
) -> Contents:
    """Read the file that ``parts`` ends with out of its opened directory.

    ``looks``: how often it is looked at, where it has several names for the moment.
    """
    name = parts[-1]
    before = _status(parent, name)
    # Opening a device can do something, so what is plainly none of ours is not opened to see what it is.
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise toolbelt.ToolError(f"{paths.shown(parts)} is {_kind_in_words(before)}, not a regular file.")
    try:
        descriptor = os.open(name, _FILE, dir_fd=parent)
    except OSError as error:
        raise _in_words(error, parts, parent, name) from error
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise toolbelt.ToolError(f"{paths.shown(parts)} is {_kind_in_words(status)}, not a regular file.")
        if not hard_links and _has_other_names(descriptor, parent, name, looks):
            raise toolbelt.ToolError(
                f"{paths.shown(parts)} has several names (hard links) and may be a file from elsewhere: it is not"
                " read. An operator can allow that with hard_links."
            )
        # The size is a promise that a growing file breaks: one byte more than allowed tells.
        data = bytearray()
        while len(data) <= most and (chunk := file.read(min(_CHUNK, most + 1 - len(data)))):
            data += chunk
    if status.st_size > most or len(data) > most:
        size = max(status.st_size, len(data))
        raise toolbelt.ToolError(f"{paths.shown(parts)} has {size} bytes: at most {most} are taken.")
    return Contents(data=bytes(data), mark=_mark(status))


def entries(descriptor: int) -> tuple[list[Entry], bool]:
    """List an opened directory in order of names, and say whether that is all of it."""
    found: list[Entry] = []
    with os.scandir(descriptor) as listing:
        for one in listing:
            if len(found) == MOST_READ_OF_A_DIRECTORY:
                return sorted(found, key=lambda entry: entry.name), False
            status = _status(descriptor, one.name)
            if status is not None:
                found.append(Entry(name=one.name, kind=_kind(status), size=status.st_size))
    return sorted(found, key=lambda entry: entry.name), True


def enter(parent: int, name: str) -> int | None:
    """Open a directory in an opened one; None if it is none any more."""
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


def _has_other_names(descriptor: int, parent: int, name: str, looks: int) -> bool:
    """Return whether the opened file has a name beside this one, now that it is open."""
    for look in range(looks):
        if look:
            time.sleep(_BETWEEN_LOOKS)
        # In this order: a name that is taken away in between is missed by neither of the two.
        status, named = os.fstat(descriptor), _status(parent, name)
        is_this = named is not None and os.path.samestat(status, named)
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


def _in_words(error: OSError, parts: tuple[str, ...], parent: int, name: str) -> toolbelt.ToolError:
    """Say what stood in the way, without a word of where on the disk the root is."""
    where = paths.shown(parts)
    status = _status(parent, name)
    if status is not None and stat.S_ISLNK(status.st_mode):
        return toolbelt.ToolError(f"{where} is a link: links are not followed.")
    if isinstance(error, FileNotFoundError):
        return toolbelt.ToolError(f"There is no {where}.")
    if isinstance(error, FileExistsError):
        return toolbelt.ToolError(f"{where} is there already: say overwrite to replace it.")
    if isinstance(error, PermissionError):
        return toolbelt.ToolError(f"The server may not open {where}.")
    if isinstance(error, NotADirectoryError):
        return toolbelt.ToolError(f"{where} is not a directory.")
    if isinstance(error, IsADirectoryError):
        return toolbelt.ToolError(f"{where} is a directory.")
    return toolbelt.ToolError(f"{where} cannot be used: {error.strerror or 'the disk refused'}.")
