"""What does a change do to what the model sees? Two surfaces of one agent, compared."""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.core import catalog, inventory, policy, surface


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The difference between two surfaces: counts before and after, tools that came and went (keys, in order),
    and toolkits whose policy section changed, as (toolkit, state before, state after); a state is on, off or none.

    ``breaks`` names what providers keep in a prompt cache and is another one now: "tools" or "system text", for a
    cache holds what stands before the first difference. ``sessions`` says for how many live sessions it is so; None:
    nobody looked.
    """

    tools_before: int
    tools_after: int
    tokens_before: int
    tokens_after: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    policy: tuple[tuple[str, str, str], ...]
    breaks: tuple[str, ...] = ()
    sessions: int | None = None

    @property
    def tools(self) -> int:
        """Say how many tools more (or fewer, below zero) are active."""
        return self.tools_after - self.tools_before

    @property
    def tokens(self) -> int:
        """Say how many tokens more (or fewer) the tools cost."""
        return self.tokens_after - self.tokens_before

    @property
    def is_nothing(self) -> bool:
        """Say whether the model sees the same as before."""
        return not (self.added or self.removed or self.policy)


def compare(before: surface.Surface, after: surface.Surface) -> Effect:
    """Compare the surface before a change with the one after it."""
    had, has = before.resolution.active, after.resolution.active
    return Effect(
        tools_before=before.spent.tools,
        tools_after=after.spent.tools,
        tokens_before=before.spent.tokens,
        tokens_after=after.spent.tokens,
        added=tuple(key for key in has if key not in had),
        removed=tuple(key for key in had if key not in has),
        policy=_policy_changes(before.policy, after.policy),
        breaks=breaks(before, after),
    )


def of_inventories(
    stored: catalog.Catalog, before: inventory.Inventory, after: inventory.Inventory
) -> Effect:
    """Compare what an agent has before a change with what it has after it, without building a surface.

    The answer is that of :func:`compare` for the two surfaces outside any session. Only the policy of toolkits that
    gain or lose a tool is written.
    """
    added, removed = after.active - before.active, before.active - after.active
    changed = added | removed
    touched = inventory.toolkits(stored, changed)
    policy_before, policy_after = (
        _policy_of(stored, inv.active, touched, changed) for inv in (before, after)
    )
    return Effect(
        tools_before=before.spent.tools,
        tools_after=after.spent.tools,
        tokens_before=before.spent.tokens,
        tokens_after=after.spent.tokens,
        added=tuple(sorted(added)),
        removed=tuple(sorted(removed)),
        policy=_policy_changes(policy_before, policy_after),
        breaks=_parts(bool(changed), policy_before.text != policy_after.text),
    )


def breaks(before: surface.Surface, after: surface.Surface) -> tuple[str, ...]:
    """Name what of the beginning of a prompt differs: a provider's cache of it is of no use any more."""
    return _parts(before.tools != after.tools, before.policy.text != after.policy.text)


def _parts(tools: bool, system_text: bool) -> tuple[str, ...]:
    """Name the parts of a prompt that differ."""
    return tuple(part for part, differs in (("tools", tools), ("system text", system_text)) if differs)


def _policy_changes(before: policy.Policy, after: policy.Policy) -> tuple[tuple[str, str, str], ...]:
    """List the sections that differ, as (toolkit or tool, state before, state after)."""
    sections_before = {s.toolkit or s.tool: s for s in before.sections}
    sections_after = {s.toolkit or s.tool: s for s in after.sections}
    changes = []
    for key in {**sections_before, **sections_after}:
        old, new = sections_before.get(key), sections_after.get(key)
        if old != new:
            changes.append((key, old.state if old else "none", new.state if new else "none"))
    return tuple(changes)


def _policy_of(
    stored: catalog.Catalog, active: frozenset[str], touched: frozenset[str], changed: frozenset[str]
) -> policy.Policy:
    """Return the policy with the sections of these toolkits and of the changed tools right.

    Every other section is left out, or is its toolkit's off text: it is the same before and after.
    """
    if not changed:
        return policy.EMPTY
    members = frozenset(member.tool for key in touched for member in stored.toolkits[key].members)
    by_toolkit = policy.active_members(stored, sorted(active & members))
    return policy.build(
        stored, active & changed, {key: tools for key, tools in by_toolkit.items() if key in touched}
    )
