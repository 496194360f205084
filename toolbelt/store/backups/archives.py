"""Archives of ``pg_dump``, in its custom format.

The password is passed in the environment: other users of the machine can read arguments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from psycopg import conninfo

from toolbelt.core import errors
from toolbelt.store.state_probe import postgresql

HEADER = b"PGDMP"


def dump(connection: Any, file: Path) -> None:
    """Write an archive of the database of Django's connection; raise errors.Refused with what pg_dump reports."""
    _run(connection, "pg_dump", "--format=custom", "--no-owner", f"--file={file}")


def restore(connection: Any, file: Path) -> None:
    """Replace the tables of the database by those of an archive, in one transaction; raise as :func:`dump`."""
    options = ("--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error")
    _run(connection, "pg_restore", *options, last=(str(file),))


def migrations(file: Path) -> frozenset[str]:
    """Return the names of Toolbelt's migrations in an archive; none if it is not of a database of Toolbelt's."""
    words = ["pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(file)]
    answer = _output(words, None)
    rows = (line.split("\t") for line in answer.splitlines())
    return frozenset(row[2] for row in rows if len(row) == 4 and row[1] == "toolbelt")


def _run(connection: Any, program: str, *options: str, last: tuple[str, ...] = ()) -> None:
    parameters = postgresql.parameters(connection)
    connection_parameters = {
        name: value for name, value in parameters.items() if name in _CONNECTION_PARAMETERS
    }
    password = connection_parameters.pop("password", None)
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    _output(
        [program, *options, f"--dbname={conninfo.make_conninfo(**connection_parameters)}", *last], environment
    )


_CONNECTION_PARAMETERS = frozenset(
    "dbname user password host port hostaddr sslmode sslrootcert sslcert sslkey connect_timeout"  # noqa: SIM905
    " channel_binding".split()
)


def _output(words: list[str], environment: dict[str, str] | None) -> str:
    if shutil.which(words[0]) is None:
        raise errors.Refused(
            f"{words[0]} was not found: install PostgreSQL's client programs, or use --portable when you back up."
        )
    run = subprocess.run(  # noqa: S603 (no shell)
        words, env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode:
        reason = run.stderr.strip().splitlines() or [f"exit code {run.returncode}"]
        raise errors.Refused(f"{words[0]} failed, and changed nothing: {' '.join(reason[:3])}")
    return run.stdout
