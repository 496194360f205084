"""Facts and acts: what was observed, and what was decided.

What a server lists, a program declares, or a process finds is a *fact*: it is recorded with its source as the actor, is
never undone, and is never in a belt. What a person, a token or an agent decides is an *act*, which can be undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

ActorKind = Literal["person", "token", "agent", "server", "program", "clock"]
ACTOR_KINDS: tuple[ActorKind, ...] = ("person", "token", "agent", "server", "program", "clock")
# Those that observe. The others decide. The clock is Toolbelt itself.
OBSERVERS = frozenset[ActorKind]({"server", "program", "clock"})

# The reasons that facts have had since before they had actions of their own.
LISTED = "as the server lists it"
DECLARED = "as the agent's program declares it"
IN_CODE = "as the installed code has it"
NOT_RUNNING = "no running process can run these tools"
RUNNING_AGAIN = "a running process can run these tools again"
ASKED = "The server asked a user, or announced that it needs to."
REASONS = frozenset({LISTED, DECLARED, IN_CODE, NOT_RUNNING, RUNNING_AGAIN, ASKED})

# The fields that only an observation sets, by kind of entry.
FIELDS: Mapping[str, frozenset[str]] = {
    "plugin": frozenset({"status", "not_running", "instructions"}),
    "tool": frozenset({"retired", "varies"}),
}
# What the source of a tool states of it.
LISTED_FIELDS = frozenset(
    {
        *("kind", "title", "description", "input_schema", "output_schema", "annotations"),
        *("details", "upstream_name", "repairs"),
    }
)
# Those that models and people read. The others, with the key, say which of the source's tools it is.
TEXTS = LISTED_FIELDS - {"kind", "upstream_name"}
# What a review decides of a tool, and the texts of the version that was approved.
REVIEWED_FIELDS = frozenset({"seen", "approved", "details_approved", "approved_version"})
# What operators decide of a toolkit in code; everything else belongs to the code.
DECIDED_OF_CODE_TOOLKITS = frozenset({"key", "plugin", "blocked", "block_ends", "brings"})
_TEXTS_OF_CODE_PLUGINS = frozenset({"title", "description"})
_APPEAR, _UPDATE = "appear", "update"
ACTIONS = frozenset(
    {
        *("tool.appear", "tool.update", "tool.disappear", "tool.return"),
        *("plugin.appear", "plugin.update", "plugin.fail", "plugin.recover", "plugin.running"),
        *("toolkit.appear", "toolkit.update"),
        *("switch.end", "override.end", "block.end", "settings.change", "draft.end", "draft.revert"),
    }
)
Entry = Mapping[str, Any]


def is_fact(action: str, before: Any, after: Any, *, reason: str, is_undo: bool) -> bool:
    """Return whether an audit entry records what was observed, so that it cannot be undone.

    An entry from before facts had their own actions is recognized by its reason, or by what changed: only what no one
    decides, or the texts of a tool that came into review with them.
    """
    if action in ACTIONS:
        return True
    kind, _, act = action.partition(".")
    if is_undo or act not in ("create", "change") or kind not in ("plugin", "tool", "toolkit"):
        return False
    if reason in REASONS:
        return True
    if act == "create" or not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return False
    changed = {*before, *after}
    if changed and changed <= FIELDS.get(kind, frozenset()):
        return True
    if kind != "tool":
        return False
    came_into_review = bool(after.get("approved_version")) and not before.get("approved_version")
    is_unseen = changed == {"seen"} and after.get("seen") is False
    return is_unseen or (came_into_review and not changed.isdisjoint(LISTED_FIELDS))


def action_of(kind: str, before: Entry | None, after: Entry) -> str:
    """Return the action of a fact about an entry, whose fields differ as ``before`` and ``after`` (None: it is new)."""
    if before is None:
        return f"{kind}.{_APPEAR}"
    if kind == "tool" and after.get("retired") is True:
        return "tool.disappear"
    if kind == "tool" and set(after) == {"retired"}:
        return "tool.return"
    if kind == "plugin" and "status" in after:
        return "plugin.fail" if after["status"] == "failed" else "plugin.recover"
    if kind == "plugin" and set(after) == {"not_running"}:
        return "plugin.running"
    return f"{kind}.{_UPDATE}"


def observed(kind: str, entry: Any) -> dict[str, Any]:
    """Return the fields of an entry that only an observation sets; none of what is not an entry."""
    fields = FIELDS.get(kind, frozenset())
    if not fields or not isinstance(entry, Mapping):
        return {}
    return {name: value for name, value in entry.items() if name in fields and _is_state(name, value)}


def decided(kind: str, entry: Entry) -> dict[str, Any]:
    """Return an entry without the fields that only an observation sets."""
    left_out = observed(kind, entry)
    return {name: value for name, value in entry.items() if name not in left_out}


def with_observed(kind: str, entry: Entry, stored: Entry | None) -> dict[str, Any]:
    """Return what is decided in an entry, with what is observed in the stored one."""
    joined = decided(kind, entry)
    states = observed(kind, stored)
    if "status" in states and joined.get("status") == "disabled" and joined.get("active") is None:
        joined |= {"active": False}
    if not joined.get("in_code"):
        states.pop("not_running", None)
    return joined | states


def is_by_decisions(kind: str, entry: Entry) -> bool:
    """Return whether an entry of something that a source lists has only what was decided about it, and no text."""
    given = {name for name, value in entry.items() if value is not None}
    match kind:
        case "tool":
            return bool(entry.get("plugin")) and given.isdisjoint({*TEXTS, "approved_version"})
        case "toolkit":
            return bool(entry.get("plugin")) and given <= DECIDED_OF_CODE_TOOLKITS
        case "plugin":
            return entry.get("in_code") is True and given.isdisjoint(_TEXTS_OF_CODE_PLUGINS)
    return False


def with_texts(kind: str, entry: Entry, stored: Entry | None, *, is_listed: bool = False) -> dict[str, Any]:
    """Return an entry that has only decisions with the texts that are stored of it; others as they are.

    A tool keeps its review as well if the entry has no part of that: no one approves a tool by leaving out its review.
    One that is not stored is not offered yet if a server or code lists the tools of its plugin (``is_listed``).
    """
    if not is_by_decisions(kind, entry):
        return dict(entry)
    if stored is None:
        is_absent = kind == "tool" and is_listed and entry.get("kind") != "elicitation"
        return {**entry, "retired": True} if is_absent else dict(entry)
    if kind != "plugin" and stored.get("plugin") != entry["plugin"]:
        return dict(entry)
    given = {name: value for name, value in entry.items() if value is not None}
    match kind:
        case "plugin":
            kept = _TEXTS_OF_CODE_PLUGINS
        case "toolkit":
            kept = frozenset(stored) - DECIDED_OF_CODE_TOOLKITS
        case _:
            kept = LISTED_FIELDS
            if REVIEWED_FIELDS.isdisjoint(given):
                kept = kept | REVIEWED_FIELDS
            elif given.get("approved") == stored.get("approved"):
                kept = kept | {"approved_version"}
    return {name: stored[name] for name in kept if name in stored} | given


def _is_state(name: str, value: Any) -> bool:
    """Return whether it is a valid value that is observed. The status "disabled" is an operator's: `active: false`."""
    if value is None:
        return True
    match name:
        case "status":
            return value in ("ready", "failed")
        case "instructions":
            return isinstance(value, str)
        case "retired" | "varies":
            return isinstance(value, bool)
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
