"""The availability of the database, for the interfaces: its errors, and the file that a server is bound to."""

from __future__ import annotations

from toolbelt.store import database_file, faults

# Returns errors.Unavailable for an error of the database; None for other errors.
classify = faults.classify
# Raises errors.Unavailable instead of the database's own error within the block.
raised_as_unavailable = faults.raised_as_unavailable
# Returns whether the SQLite file was replaced under this server.
file_was_replaced = database_file.was_replaced


def start() -> None:
    """Bind the server to the current SQLite file, so that it never creates a new one."""
    database_file.open_existing_only()
