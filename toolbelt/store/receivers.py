"""The signal receivers of the store, connected when the application starts."""

from __future__ import annotations

from toolbelt.store import loadout_names, reconnecting, revisions, tokens, write_turns


def connect() -> None:
    """Connect the receivers: revisions, token counts, checks of loadouts' names, retries of reads, and turns of
    writers.
    """
    revisions.connect()
    tokens.connect()
    loadout_names.connect()
    reconnecting.connect()
    write_turns.connect()
