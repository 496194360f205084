"""The catalog entry that lets an upstream server ask users.

It is granted, switched, blocked and reviewed like a tool. It is created, to be reviewed, when a server first wants to
ask; an operator may also create it in advance. A server that never asks has none.
"""

from __future__ import annotations

import itertools

from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import approvals
from toolbelt.core import catalog, errors, facts, keys
from toolbelt.store import snapshots

SYSTEM = writing.by("toolbelt", via="system", reason=facts.ASKED)


def request_review(name: str) -> None:
    """Create the entry for review, if this server has none: it wants to ask a user."""
    with writing.begin():
        stored = snapshots.catalog()
        try:
            plugin = approvals.find(name, "upstream", stored=stored)
        except errors.NotFound:
            # The server was removed meanwhile.
            return
        if catalog.elicitation(stored, plugin) is None:
            _create(SYSTEM.observed_by(name, "server"), plugin, stored, seen=False)


def ensure_entry(write: writing.Write, name: str) -> str:
    """Create the approved entry that lets a server ask users, or approve the existing one, and return its key.

    No agent has it until it is granted. Raise errors.NotFound.
    """
    with writing.begin():
        stored = snapshots.catalog()
        plugin = approvals.find(name, "upstream", stored=stored)
        entry = catalog.elicitation(stored, plugin)
        if entry is None:
            return _create(write, plugin, stored, seen=True)
        if entry.retired or not entry.seen:
            entries.change(write, "tool", entry.key, {"seen": None, "retired": None})
        return entry.key


def _create(write: writing.Write, plugin: catalog.Plugin, stored: catalog.Catalog, *, seen: bool) -> str:
    key = _free(catalog.elicitation_key(plugin), stored)
    title = plugin.title or plugin.name
    entry = {
        "key": key,
        "kind": "elicitation",
        "plugin": plugin.name,
        "title": f"{title}: may ask the user",
        "description": "The server may ask the user questions while one of its tools runs.",
        **({} if seen else {"seen": False}),
    }
    entries.create(write, "tool", entry)
    return key


def _free(key: str, stored: catalog.Catalog) -> str:
    """Return the key, or a similar one if it is taken."""
    taken = {keys.fold(key) for key in (*stored.tools, *stored.toolkits)}
    for number in itertools.count(2):
        if keys.fold(key) not in taken:
            return key
        key = f"{key.rstrip('0123456789').rstrip('_')[: keys.MAX_LENGTH - 4]}_{number}"
    raise AssertionError
