"""What does the store listen to? One line for whoever starts the application."""

from __future__ import annotations

from toolbelt.store import loadout_names, reconnecting, revisions, tokens


def connect() -> None:
    """Keep revisions moving and tokens counted, whoever writes; check what names loadouts; run cut reads again."""
    revisions.connect()
    tokens.connect()
    loadout_names.connect()
    reconnecting.connect()
