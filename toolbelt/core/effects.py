"""Effects: what a change does to what the model sees."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import NamedTuple

from toolbelt.core import catalog, policy, surface
from toolbelt.core.rules import inventory

# What one conversation does, and what several do.
_VERBS = (
    ("continues", "continue"),
    ("continues in words", "continue in words"),
    ("rewrites", "rewrite"),
    ("begins again", "begin again"),
)


class Conversations(NamedTuple):
    """Live conversations, by what a change does to them.

    continued: The change is appended. in_words: It is said in words, and the gate refuses what is removed. rewritten:
    Their programs send no conversation, so what precedes every message changes: the model may refuse the next request.
    restarted: They were told what is purged, and begin again with their next request.
    """

    continued: int = 0
    in_words: int = 0
    rewritten: int = 0
    restarted: int = 0

    def __add__(self, other: object) -> Conversations:
        """Return the sums."""
        if not isinstance(other, Conversations):
            return NotImplemented
        return Conversations(*map(sum, zip(self, other, strict=True)))

    @property
    def total(self) -> int:
        """Return how many there are."""
        return sum(self)

    @property
    def sentence(self) -> str:
        """Return them in words: ``37 live conversations: 31 continue, 4 continue in words, 2 rewrite``."""
        if not self.total:
            return "no live conversations"
        parts = [
            f"{count:,} {one if count == 1 else several}"
            for count, (one, several) in zip(self, _VERBS, strict=True)
            if count
        ]
        return f"{self.total:,} live conversation{'s' if self.total > 1 else ''}: {', '.join(parts)}"


NO_CONVERSATIONS = Conversations()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The difference between two surfaces: counts before and after, added and removed tools (keys, in order), and
    toolkits whose policy section changed, as (toolkit, state before, state after); a state is on, off or none.
    ``on_request_added`` and ``on_request_removed`` are tools that the agent now gets on request and had in no way
    before, and those that it got on request and now gets in no way.

    ``breaks`` names the parts of a prompt cache that the change invalidates: "tools" or "system text", because a cache
    holds only what precedes the first difference. ``conversations`` are the live ones concerned; None if they were not
    counted.
    """

    tools_before: int
    tools_after: int
    tokens_before: int
    tokens_after: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    policy: tuple[tuple[str, str, str], ...]
    on_request_added: tuple[str, ...] = ()
    on_request_removed: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    conversations: Conversations | None = None

    @property
    def sessions(self) -> int | None:
        """Return the number of live conversations concerned; None if they were not counted."""
        return None if self.conversations is None else self.conversations.total

    @property
    def tools(self) -> int:
        """Return by how many the number of active tools changes."""
        return self.tools_after - self.tools_before

    @property
    def tokens(self) -> int:
        """Return by how many the tokens of the tools change."""
        return self.tokens_after - self.tokens_before

    @property
    def is_nothing(self) -> bool:
        """Return whether the model sees the same as before, and can load the same."""
        on_request = self.on_request_added or self.on_request_removed
        return not (self.added or self.removed or self.policy or on_request)


def compare(before: surface.Surface, after: surface.Surface) -> Effect:
    """Return the effect of a change from the surface before it to the one after it."""
    old, new = before.resolution.active, after.resolution.active
    requestable = [surface_.resolution.on_request for surface_ in (before, after)]
    on_request_added, on_request_removed = _on_request(old.keys(), new.keys(), *requestable)
    return Effect(
        tools_before=before.spent.tools,
        tools_after=after.spent.tools,
        tokens_before=before.spent.tokens,
        tokens_after=after.spent.tokens,
        added=tuple(key for key in new if key not in old),
        removed=tuple(key for key in old if key not in new),
        policy=_policy_changes(before.policy, after.policy),
        on_request_added=on_request_added,
        on_request_removed=on_request_removed,
        breaks=breaks(before, after),
    )


def of_inventories(
    stored: catalog.Catalog,
    before: inventory.Inventory,
    after: inventory.Inventory,
    *,
    on_request: tuple[frozenset[str], frozenset[str]],
) -> Effect:
    """Return the effect of a change from an agent's inventory before it to the one after it, without building surfaces.

    ``on_request`` are the tools on request before and after. The answer is that of :func:`compare` for the surfaces of
    two new sessions. Only the policy of toolkits that gain or lose a tool is written.
    """
    on_request_added, on_request_removed = _on_request(before.active, after.active, *on_request)
    added, removed = after.active - before.active, before.active - after.active
    changed = added | removed
    touched = inventory.toolkits(stored, changed) | (before.concerned ^ after.concerned)
    policy_before, policy_after = (_policy_of(stored, inv, touched, changed) for inv in (before, after))
    return Effect(
        tools_before=before.spent.tools,
        tools_after=after.spent.tools,
        tokens_before=before.spent.tokens,
        tokens_after=after.spent.tokens,
        added=tuple(sorted(added)),
        removed=tuple(sorted(removed)),
        policy=_policy_changes(policy_before, policy_after),
        on_request_added=on_request_added,
        on_request_removed=on_request_removed,
        breaks=_parts(
            bool(changed), policy_before.text != policy_after.text or before.loadable != after.loadable
        ),
    )


def _on_request(
    active_before: Set[str], active_after: Set[str], before: frozenset[str], after: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tools on request that are gained and lost; what was on before, or is on now, is neither."""
    added = (after - before) - active_before
    removed = (before - after) - active_after
    return tuple(sorted(added)), tuple(sorted(removed))


def breaks(before: surface.Surface, after: surface.Surface) -> tuple[str, ...]:
    """Return the parts at the start of a prompt that differ: a provider's cache of them is invalid."""
    return _parts(before.tools != after.tools, before.policy.text != after.policy.text)


def _parts(tools: bool, system_text: bool) -> tuple[str, ...]:
    """Return the parts of a prompt that differ."""
    return tuple(part for part, differs in (("tools", tools), ("system text", system_text)) if differs)


def _policy_changes(before: policy.Policy, after: policy.Policy) -> tuple[tuple[str, str, str], ...]:
    """Return the sections that differ, as (toolkit or tool, state before, state after)."""
    sections_before = {s.toolkit or s.tool: s for s in before.sections}
    sections_after = {s.toolkit or s.tool: s for s in after.sections}
    changes = []
    for key in {**sections_before, **sections_after}:
        old, new = sections_before.get(key), sections_after.get(key)
        if old != new:
            changes.append((key, old.state if old else "none", new.state if new else "none"))
    return tuple(changes)


def _policy_of(
    stored: catalog.Catalog, has: inventory.Inventory, touched: frozenset[str], changed: frozenset[str]
) -> policy.Policy:
    """Return the policy in which the sections of these toolkits and of the changed tools are correct.

    Every other section is left out or is its toolkit's off text: it is the same before and after.
    """
    if not changed and not touched:
        return policy.EMPTY
    members = frozenset(member.tool for key in touched for member in stored.toolkits[key].members)
    by_toolkit = policy.active_members(stored, sorted(has.active & members))
    return policy.build(
        stored,
        has.active & changed,
        {key: tools for key, tools in by_toolkit.items() if key in touched},
        has.concerned,
    )
