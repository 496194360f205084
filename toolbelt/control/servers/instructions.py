"""The instructions of upstream servers: what operators see of them, and how they become a policy.

What a server states is recorded as observed. It is shown until an operator has seen it, and reaches no model unless an
operator uses it as policy: then its text is copied into a toolkit's policy, which is an ordinary change of the toolkit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import approvals, line_diffs
from toolbelt.core import catalog, errors
from toolbelt.core.imported import flags, instructions
from toolbelt.store import listings, snapshots

State = instructions.State


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """The instructions of a server: their text, and the hash (``shown``) to decide about them with.

    ``lines`` is the unified diff from those that were seen before; empty for new ones, and if only their hash is
    stored. ``flags`` are the findings, and ``toolkits`` those whose policy they can be copied into, first those with
    tools of the server.
    """

    plugin: catalog.Plugin
    state: State
    text: str
    shown: str
    lines: tuple[str, ...]
    flags: tuple[str, ...]
    toolkits: tuple[catalog.Toolkit, ...]


def find(name: str) -> Instructions:
    """Return the instructions of a server; raise errors.NotFound."""
    stored = snapshots.catalog()
    return _read(stored, approvals.find(name, "upstream", stored=stored), listings.find(name))


def unseen(plugin: str = "") -> tuple[Instructions, ...]:
    """Return the instructions that no operator has seen, of all servers or of one."""
    stored = snapshots.catalog()
    found = [
        server
        for name, server in stored.plugins.items()
        if plugin in ("", name) and instructions.is_unseen(server)
    ]
    listed = listings.load_all() if found else {}
    return tuple(_read(stored, server, listed.get(server.name)) for server in found)


def record(
    write: writing.Write, plugin: catalog.Plugin, text: str, *, is_same_server: Callable[[], bool]
) -> None:
    """Record what a server states, cleaned, within the caller's transaction.

    While other instructions await an operator, those of further processes of the same version do not replace them,
    unless a person asked the server: each process may state its own.
    """
    name, text = plugin.name, instructions.read(text)
    shown = instructions.version(text)
    if shown == plugin.instructions:
        return
    is_awaited = instructions.is_unseen(plugin) and shown != plugin.instructions_seen
    if is_awaited and write.is_observation and is_same_server():
        return
    listings.record_instructions(name, text)
    entries.change(write.observed_by(name, "server"), "plugin", name, {"instructions": shown or None})


def see(write: writing.Write, name: str, shown: str) -> writing.Change:
    """Mark the instructions that were shown as seen. Raise errors.NotFound, or errors.Stale if they have changed."""
    with writing.begin():
        now = _current(name, shown)
        change = entries.change(write, "plugin", name, {"instructions_seen": now.shown or None})
        listings.see_instructions(name)
    return change


def use(write: writing.Write, name: str, shown: str, toolkit: str) -> writing.Change:
    """Copy the instructions that were shown to the end of a toolkit's policy, and mark them as seen.

    Return the change of the toolkit. Raise errors.ConfirmationRequired if they have findings, and as :func:`see` and a
    change of the toolkit do.
    """
    with writing.begin():
        now = _current(name, shown)
        if not now.text:
            raise errors.Refused(f"{name} states no instructions.")
        if now.flags and not write.confirm:
            raise errors.ConfirmationRequired(now.flags, {"flags": list(now.flags)})
        write = write.in_batch()
        policy = entries.read("toolkit", toolkit).get("policy", "")
        see(write, name, shown)
        text = "\n\n".join(filter(None, (policy.rstrip(), now.text)))
        return entries.change(write, "toolkit", toolkit, {"policy": text})


def _current(name: str, shown: str) -> Instructions:
    now = find(name)
    if now.shown != shown:
        raise errors.Stale(f"The instructions of {name}", shown, now.shown, by="source")
    return now


def _read(stored: catalog.Catalog, plugin: catalog.Plugin, listing: listings.Listing | None) -> Instructions:
    text, before = ("", "") if listing is None else (listing.instructions, listing.instructions_seen)
    is_known = bool(before) and instructions.version(before) == plugin.instructions_seen
    own = [kit for kit in stored.toolkits.values() if not kit.plugin]
    of_server = set(stored.tools_of_plugin.get(plugin.name, ()))
    own.sort(key=lambda kit: of_server.isdisjoint(member.tool for member in kit.members))
    return Instructions(
        plugin=plugin,
        state=instructions.state(plugin),
        text=text,
        shown=plugin.instructions,
        lines=line_diffs.lines_of(before, text) if is_known and before != text else (),
        flags=flags.flags(text),
        toolkits=tuple(own),
    )
