"""Backup, restore, and moving to another database.

A backup is one file. A backup of SQLite is a SQLite file, and one of PostgreSQL an archive of ``pg_dump``, or a SQLite
file if it should be portable. A SQLite file can be restored into either database.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from toolbelt import conf, locations
from toolbelt.core import errors
from toolbelt.store.backups import archives, files, table_rows

# How commands begin the sentence that says why they failed.
_SENTENCES = ("CommandError: ", "toolbelt: ")


def backup(file: Path, *, portable: bool = False) -> Mapping[str, int]:
    """Write a backup while others write. Return the numbers of agents, users and audit entries, or raise Refused."""
    if file.exists():
        raise errors.Refused(f"{file} exists already. Choose another name: a backup is never overwritten.")
    if not file.resolve().parent.is_dir():
        raise errors.Refused(f"The directory {file.resolve().parent} does not exist. Create it first.")
    with _draft(file.resolve().parent) as draft:
        if connection.vendor == "sqlite":
            files.copy(_database_file(), draft)
            files.seal(draft)
        elif portable:
            _write_rows(draft)
        else:
            archives.dump(connection, draft)
        _check(draft)
        draft.rename(file)
    return table_rows.counts()


def restore(file: Path, *, replace: bool = False) -> Mapping[str, int]:
    """Replace the database by a backup, and apply migrations that it lacks; return the numbers of its agents, users and
    audit entries.

    It succeeds whole, or the data stays as it was; only if the migrations after an archive fail, the archive is
    restored nevertheless. Raise errors.Refused then, if there is data and ``replace`` is not set, and for a file that
    is not a backup of this or an earlier version.
    """
    header = _check(file)
    if header == archives.HEADER and connection.vendor == "sqlite":
        raise errors.Refused(
            f"{file} is an archive of PostgreSQL, and this database is SQLite. Write a backup that fits both, in the"
            f" installation that it is from: `{conf.COMMAND} backup --portable FILE`."
        )
    existing = table_rows.counts() if _exists() else {}
    if any(existing.values()) and not replace:
        raise errors.Refused(
            f"The database has data already ({described(existing)}). Back it up, and then add --replace to overwrite"
            " it."
        )
    number = table_rows.last_number(DEFAULT_DB_ALIAS) if existing else 0
    if header == archives.HEADER:
        # Open connections would lock the tables.
        connections.close_all()
        archives.restore(connection, file)
        try:
            _migrate(DEFAULT_DB_ALIAS)
        except errors.Refused as error:
            raise errors.Refused(
                f"The backup was restored, but its migrations failed: {error} Correct that, then run"
                f" `{conf.COMMAND} migrate`."
            ) from error
        table_rows.move_on(DEFAULT_DB_ALIAS, number)
    else:
        _restore_file(file, number)
    return table_rows.counts()


def move(url: str, *, replace: bool = False) -> str:
    """Copy everything into the database at another address; return what restoring prints. Raise errors.Refused.

    The installation's settings stay as they are.
    """
    if _is_this_database(url):
        raise errors.Refused("That is the address of this database. Give the one of another database.")
    with tempfile.TemporaryDirectory(prefix="toolbelt-move-") as directory:
        file = Path(directory) / "database.sqlite3"
        backup(file, portable=True)
        return _manage("restore", str(file), *(["--replace"] if replace else []), url=url)


def _is_this_database(url: str) -> bool:
    """Return whether an address is that of the installation's own database, however it is written."""
    current = connection.settings_dict
    try:
        other = environ.Env.db_url_config(url)
    except (ValueError, KeyError, ImproperlyConfigured):
        # Restoring says what is wrong with it.
        return False
    if ("sqlite" in current["ENGINE"]) != ("sqlite" in other["ENGINE"]):
        return False
    if "sqlite" in current["ENGINE"]:
        return Path(other["NAME"]).absolute() == Path(current["NAME"]).absolute()
    return all(str(other[name] or "") == str(current[name] or "") for name in ("HOST", "PORT", "NAME"))


def _restore_file(file: Path, number: int) -> None:
    with _draft(Path(tempfile.gettempdir())) as draft:
        files.copy(file, draft)
        with _opened(draft):
            _migrate(table_rows.FILE_ALIAS, url=f"sqlite:///{draft}")
            if connection.vendor == "sqlite":
                table_rows.move_on(table_rows.FILE_ALIAS, number)
            else:
                _migrate(DEFAULT_DB_ALIAS)
                table_rows.copy(table_rows.FILE_ALIAS, DEFAULT_DB_ALIAS)
        if connection.vendor == "sqlite":
            connections.close_all()
            files.copy(draft, _database_file())


def _write_rows(file: Path) -> None:
    with _opened(file):
        _migrate(table_rows.FILE_ALIAS, url=f"sqlite:///{file}")
        table_rows.copy(DEFAULT_DB_ALIAS, table_rows.FILE_ALIAS)
    files.seal(file)


def _check(file: Path) -> bytes:
    """Return the header of a backup; raise errors.Refused if the file is not a backup, or is of a newer version."""
    try:
        with file.open("rb") as opened:
            start = opened.read(len(files.HEADER))
        if start.startswith(archives.HEADER):
            header, migrations = archives.HEADER, archives.migrations(file)
        elif start == files.HEADER:
            header, migrations = files.HEADER, files.migrations(file)
        else:
            raise errors.Refused(
                f"{file} is not a backup: it is neither a SQLite file nor an archive of pg_dump."
            )
    except OSError as error:
        raise errors.Refused(f"{file} cannot be read: {error.strerror}.") from error
    except sqlite3.DatabaseError as error:
        raise errors.Refused(f"{file} is damaged ({error}). Use another backup.") from error
    if not migrations:
        raise errors.Refused(f"{file} is not a backup of Toolbelt: it has none of its tables.")
    existing = {name for app, name in MigrationLoader(None).disk_migrations if app == "toolbelt"}
    if unknown := sorted(migrations - existing):
        raise errors.Refused(
            f"{file} is from a newer version of Toolbelt (it has the migration {unknown[-1]}). Install that version"
            " first."
        )
    return header


def _exists() -> bool:
    # Connecting would create an empty file.
    return connection.vendor != "sqlite" or _database_file().exists()


def _database_file() -> Path:
    return Path(connection.settings_dict["NAME"]).resolve()


@contextlib.contextmanager
def _draft(directory: Path) -> Iterator[Path]:
    """Yield the path of a new file that only its owner can read; it is removed at the end if it is still there."""
    handle, name = tempfile.mkstemp(dir=directory, prefix=".toolbelt-", suffix=".draft")
    os.close(handle)
    try:
        yield Path(name)
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            Path(name + end).unlink(missing_ok=True)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[None]:
    table_rows.open_file(file)
    try:
        yield
    finally:
        table_rows.close_file()


def _migrate(alias: str, *, url: str = "") -> None:
    """Apply the migrations that a database lacks. ``url`` is its address, if it is not the installation's."""
    executor = MigrationExecutor(connections[alias])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        connections[alias].close()
        # In a process whose default database it is, because that is the one that migrations write to.
        _manage("migrate", "--no-input", "--verbosity=0", url=url)


def _manage(*words: str, url: str = "") -> str:
    """Run a management command in a process of its own, for another database if ``url`` is given."""
    path = os.pathsep.join(
        filter(None, (str(Path(locations.__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
    environment = {**os.environ, "PYTHONPATH": path, **({"DATABASE_URL": url} if url else {})}
    run = subprocess.run(  # noqa: S603 (no shell)
        [sys.executable, "-m", "toolbelt", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        lines = run.stderr.strip().splitlines() or [f"{words[0]} failed"]
        # Log lines may stand before it.
        sentence = next((line for line in lines if line.startswith(_SENTENCES)), lines[-1])
        for prefix in _SENTENCES:
            sentence = sentence.removeprefix(prefix)
        raise errors.Refused(sentence)
    return run.stdout


def described(counted: Mapping[str, int]) -> str:
    """Return these numbers in words, such as "agents: 3, users: 1"."""
    return ", ".join(f"{name}: {number}" for name, number in counted.items())
