"""Tells the shells whether the database can be used: what kind of fault an error is, and what a server relies on."""

from __future__ import annotations

from toolbelt.store import database_file, faults

# Returns errors.Unavailable for a fault of the database; None for anything else.
classify = faults.classify
# Raises errors.Unavailable within its block, where the database's own error would come.
raised_as_unavailable = faults.raised_as_unavailable
# Says whether the SQLite file was replaced under this server.
file_was_exchanged = database_file.was_exchanged


def start() -> None:
    """Hold a server to the database that it starts with. For servers."""
    database_file.open_existing_only()
