"""The instructions of upstream servers: texts by which a server tells a model how to use it.

They are observed, cleaned and held by their hash, and reach no model: a policy has only what operators and installed
code wrote. An operator may copy them into the policy of a toolkit, as the operator's own text. If the server states
others later, they are shown to operators until one has seen them.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from toolbelt.core import catalog
from toolbelt.core.imported import cleaning

MAX_LENGTH = 16_000

State = Literal["none", "new", "changed", "seen"]


def read(stated: str) -> str:
    """Return the instructions that a server states, cleaned and cut."""
    return cleaning.text(stated, MAX_LENGTH)


def version(text: str) -> str:
    """Return the hash of cleaned instructions; empty if there are none."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest() if text else ""


def state(plugin: catalog.Plugin) -> State:
    """Return whether an operator has seen a server's instructions, or their absence."""
    if plugin.instructions == plugin.instructions_seen:
        return "seen" if plugin.instructions else "none"
    return "changed" if plugin.instructions_seen else "new"


def is_unseen(plugin: catalog.Plugin) -> bool:
    """Return whether a server states instructions, or none anymore, and no operator has seen that."""
    return bool(plugin.upstream) and state(plugin) in ("new", "changed")
