"""How is a change put to the operator that reaches many agents: what differs, and what becomes of each of them?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from toolbelt.control import consequences
from toolbelt.control import proposals as doors
from toolbelt.core import belts
from toolbelt.web import words
from toolbelt.web.pages import model
from toolbelt.web.presenters import access, pieces, proposals

# Of a text, as much as tells it from another one.
_LONGEST = 160
# What a toolkit's section of the policy is made of.
_TEXTS = frozenset({"policy", "policy_when_off", "tool_notes"})


def page(
    asked: doors.Unseen,
    *,
    again: bool,
    action: str,
    fields: Iterable[tuple[str, str]],
    reason: str,
    back: str,
) -> proposals.ProposalPage:
    """Fill the page; ``fields`` are those of the form, but for what was shown before."""
    proposal = asked.proposal
    word = belts.KINDS[proposal.kind].word
    removal = proposal.after is None
    count, others = len(proposal.touched), proposal.agents - len(proposal.touched)
    return proposals.ProposalPage(
        title=f"{'Remove' if removal else 'Make' if proposal.before is None else 'Save'} the {word} {proposal.name}?",
        told=f"It changes what {words.number(count)} of {words.number(proposal.agents)} agents "
        f"{'gets, from its' if count == 1 else 'get, from their'} next request on.",
        rest=_rest(others),
        caches="What providers keep of their prompts is read anew once."
        if any(one.effect.breaks for one in proposal.touched)
        else "",
        again=again,
        differences=() if removal else tuple(_differences(proposal)),
        reached=tuple(_reached(one, proposal) for one in proposal.touched),
        action=action,
        fields=tuple(
            pieces.Field(name=name, value=value) for name, value in (*fields, ("shown", proposal.digest))
        ),
        reason=reason,
        word="Remove" if removal else "Save",
        dangerous=removal or any(one.destructive for one in proposal.touched),
        may_edit=not removal,
        back=back,
    )


def _rest(others: int) -> str:
    if not others:
        return ""
    return f"The other {'one keeps what it has' if others == 1 else f'{words.number(others)} keep what they have'}."


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[pieces.Difference]:
    """Say which keys differ, and how; of lists, what goes and what comes."""
    for key in after:
        old, new = before.get(key), after[key]
        if isinstance(old, list) and isinstance(new, list):
            gone = [one for one in old if one not in new]
            come = [one for one in new if one not in old]
            old, new = (gone or None, come or None) if gone or come else (None, "the same in another order")
        yield pieces.Difference(
            what=key.replace("_", " "),
            before="" if old is None else _value(old),
            after="" if new is None else _value(new),
        )


def in_short(proposal: doors.Proposal) -> str:
    """Say in a line whom a change reached."""
    count = len(proposal.touched)
    return f"{words.number(count)} agent{'' if count == 1 else 's'} changed."


def _differences(proposal: doors.Proposal) -> Iterator[pieces.Difference]:
    naming = belts.KINDS[proposal.kind].named_by
    after = {key: value for key, value in (proposal.after or {}).items() if key != naming}
    return differences(proposal.before or {}, after)


def _value(value: object) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return words.cut(", ".join(value), _LONGEST)
    return words.cut(words.value(value), _LONGEST)


def _reached(one: consequences.Consequence, proposal: doors.Proposal) -> proposals.Reached:
    effect = one.effect
    return proposals.Reached(
        agent=one.agent.key,
        marks=tuple(_marks(one)),
        effect=pieces.Effect(
            tools_before=words.number(effect.tools_before),
            tools_after=words.number(effect.tools_after),
            tools_delta=words.signed(effect.tools),
            tokens_before=words.number(effect.tokens_before),
            tokens_after=words.number(effect.tokens_after),
            tokens_delta=words.signed(effect.tokens),
            notes=tuple(_notes(one, proposal)),
        ),
        added=effect.added,
        removed=effect.removed,
        gained=one.gained,
        lost=one.lost,
    )


def _notes(one: consequences.Consequence, proposal: doors.Proposal) -> Iterator[str]:
    """Say what becomes of the policy; where the text itself is what changes, in other words."""
    rewritten = proposal.kind == "toolkit" and _TEXTS.intersection(proposal.after or {})
    for changed in one.effect.policy:
        toolkit, before, after = changed
        if rewritten and toolkit == proposal.name and before == after:
            yield f"policy of {toolkit} reads otherwise"
        else:
            yield from model.notes([changed])


def _marks(one: consequences.Consequence) -> Iterator[access.Mark]:
    if one.agent.protected:
        yield access.Mark(word="protected", tone="warning")
    if one.destructive:
        yield access.Mark(
            word=f"{words.tools(len(one.destructive))} more can destroy something", tone="danger"
        )
    if one.spends.is_passed:
        yield access.Mark(word="over its budget then", tone="warning")
