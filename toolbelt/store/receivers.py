"""The signal receivers of the store, connected when the application starts."""

from __future__ import annotations

from toolbelt.store import (
    call_approvals,
    context_use,
    conversations,
    learned_words,
    loadout_names,
    reconnecting,
    revisions,
    token_counts,
    tool_schemas,
    write_turns,
)


def connect() -> None:
    """Connect the receivers: revisions, token counts, checks of schemas and loadouts' names, retries of reads, turns of
    writers, and what goes with an agent that is deleted.
    """
    revisions.connect()
    token_counts.connect()
    tool_schemas.connect()
    loadout_names.connect()
    reconnecting.connect()
    write_turns.connect()
    learned_words.connect()
    context_use.connect()
    conversations.connect()
    call_approvals.connect()
