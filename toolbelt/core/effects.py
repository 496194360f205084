"""What does a change do to what the model sees? Two surfaces of one agent, compared."""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.core import surface


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
    told_before = {s.toolkit or s.tool: s for s in before.policy.sections}
    told_after = {s.toolkit or s.tool: s for s in after.policy.sections}
    changed = []
    for key in {**told_before, **told_after}:
        old, new = told_before.get(key), told_after.get(key)
        if old != new:
            changed.append((key, old.state if old else "none", new.state if new else "none"))
    return Effect(
        tools_before=before.spent.tools,
        tools_after=after.spent.tools,
        tokens_before=before.spent.tokens,
        tokens_after=after.spent.tokens,
        added=tuple(key for key in has if key not in had),
        removed=tuple(key for key in had if key not in has),
        policy=tuple(changed),
        breaks=breaks(before, after),
    )


def breaks(before: surface.Surface, after: surface.Surface) -> tuple[str, ...]:
    """Name what of the beginning of a prompt differs: a provider's cache of it is of no use any more."""
    parts = (
        ("tools", before.tools != after.tools),
        ("system text", before.policy.text != after.policy.text),
    )
    return tuple(part for part, differs in parts if differs)
