"""What does the store listen to? One line for whoever starts the application."""

from __future__ import annotations

from toolbelt.store import loadout_names, reconnecting, revisions, tokens, turns


def connect() -> None:
    """Keep revisions moving and tokens counted, whoever writes; check what names loadouts.

    And see to it that connections bear what happens to them: reads that were cut run again, writers take turns.
    """
    revisions.connect()
    tokens.connect()
    loadout_names.connect()
    reconnecting.connect()
    turns.connect()
