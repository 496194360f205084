"""The confirmation of a change that affects many agents: what differs, and the effect on each agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolbelt.control.catalog import consequences, proposals
from toolbelt.core import belts
from toolbelt.web.kit import model_panel, pieces, titles, tool_sections, words

# How much of a text is shown.
_MAX_LENGTH = 160
# What a toolkit's section of the policy is made of.
_TEXTS = frozenset({"policy", "policy_when_off", "tool_notes"})


def page(asked: proposals.UnseenEffect, fields: Iterable[tuple[str, str]], **form: Any) -> pieces.View:
    """Return the page; ``fields`` are those of the form, except the digest of what was shown before."""
    proposal = asked.proposal
    word = belts.KINDS[proposal.kind].word
    removal = proposal.after is None
    count, others = len(proposal.touched), proposal.agents - len(proposal.touched)
    verb = "Remove" if removal else "Create" if proposal.before is None else "Save"
    named_by = belts.KINDS[proposal.kind].named_by
    after = {key: value for key, value in (proposal.after or {}).items() if key != named_by}
    return pieces.View(
        title=f"{verb} {word} {titles.named(proposal.kind, proposal.name)}?",
        summary="No agent is affected."
        if not count
        else f"This changes what {words.number(count)} of {words.number(proposal.agents)} agents "
        f"{'gets from its' if count == 1 else 'get from their'} next request.",
        rest=f"The other {'agent is' if others == 1 else f'{words.number(others)} agents are'} not affected."
        if count and others
        else "",
        caches="This resets their prompt caches."
        if any(reached.effect.breaks for reached in proposal.touched)
        else "",
        warnings=tuple(denial.message for denial in proposal.denials),
        differences=tuple(differences(proposal.before or {}, after)),
        reached=tuple(_reached(reached, proposal) for reached in proposal.touched),
        fields=(*fields, ("shown", proposal.digest)),
        word="Save changes" if verb == "Save" else f"{verb} {word}",
        dangerous=removal or any(reached.destructive for reached in proposal.touched),
        may_edit=not removal,
        **form,
    )


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[pieces.Difference]:
    """Return which keys differ, and how; of lists, the items that are removed and added."""
    for key in after:
        old, new = before.get(key), after[key]
        if isinstance(old, list) and isinstance(new, list):
            removed = [item for item in old if item not in new]
            added = [item for item in new if item not in old]
            is_reordered = not removed and not added
            old, new = (None, "same entries, new order") if is_reordered else (removed or None, added or None)
        yield pieces.Difference(
            what=key.replace("_", " "),
            before="" if old is None else _value(old),
            after="" if new is None else _value(new),
        )


def _value(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return words.cut(", ".join(value), _MAX_LENGTH)
    return words.cut(words.value(value), _MAX_LENGTH)


def _reached(consequence: consequences.Consequence, proposal: proposals.Proposal) -> pieces.View:
    effect = consequence.effect
    return pieces.View(
        agent=consequence.agent.key,
        marks=tuple(_marks(consequence)),
        effect=pieces.Effect.of([effect], _notes(consequence, proposal)),
        added=effect.added,
        removed=effect.removed,
        gained=consequence.gained,
        lost=consequence.lost,
    )


def _notes(consequence: consequences.Consequence, proposal: proposals.Proposal) -> Iterator[str]:
    """Return what becomes of the policy; where the text itself is what changes, in other words."""
    rewritten = proposal.kind == "toolkit" and _TEXTS.intersection(proposal.after or {})
    for changed in consequence.effect.policy:
        toolkit, before, after = changed
        if rewritten and toolkit == proposal.name and before == after:
            yield f"changes policy {toolkit}"
        else:
            yield from model_panel.notes([changed])


def _marks(consequence: consequences.Consequence) -> Iterator[tool_sections.Mark]:
    if consequence.agent.protected:
        yield tool_sections.Mark(word="protected", tone="warning")
    if consequence.destructive:
        yield tool_sections.Mark(
            word=f"adds {words.tools(len(consequence.destructive))} that may be destructive", tone="danger"
        )
    if consequence.spends.is_exceeded:
        yield tool_sections.Mark(word="over budget afterwards", tone="warning")
