"""The question before many are set at once, and the notice afterwards."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from toolbelt.control.access import bulk
from toolbelt.web.kit import model, notices, pieces, words

# Of agents for which something differs, and of tools that come or go: more would be no question, but a book.
MAX_LINES = 100


def question(
    plan: bulk.Plan,
    names: Sequence[str],
    keys: Sequence[str],
    toolkits: Collection[str],
    *,
    action: str,
    back: str,
) -> notices.Confirmation:
    """Ask before it is done, with all that it would do."""
    whose = names[0] if len(names) == 1 else f"{len(names)} agents"
    return notices.Confirmation(
        title=f"{_verb(plan.on, keys, toolkits)} for {whose}?",
        reasons=tuple(_reasons(plan, len(names) * len(keys))),
        effect=_effect(plan),
        differences=tuple(_differences(plan))[:MAX_LINES],
        three_ways=False,
        action=action,
        fields=tuple(
            pieces.Field(name=name, value=value)
            for name, value in (
                ("on", words.stored(plan.on)),
                ("seen", json.dumps(plan.seen)),
                ("next", back),
                ("confirm", "yes"),
            )
        ),
        confirm_word=f"{_word(plan.on)}: {_count(plan.changes, 'change')}",
        dangerous=any(part.effect.added and part.reasons for part in plan.possible),
        back=back,
    )


def nothing(plan: bulk.Plan, names: Sequence[str], keys: Sequence[str]) -> str:
    """Return that there is nothing to do, and why."""
    if plan.refused:
        return " ".join(["Nothing was changed.", *(part.refused for part in plan.refused[:3])])
    if not keys:
        return "No changes: the list is empty."
    return f"No changes: {_all(plan.same)} already {words.state(plan.on)}."


def done(seen: bulk.Seen, on: bool | None) -> str:
    """Return what was done."""
    count = sum(len(keys) for keys in seen.values())
    whose = next(iter(seen)) if len(seen) == 1 else f"{len(seen)} agents"
    return f"{_count(count, 'change')} for {whose}: {words.state(on)}."


def _verb(on: bool | None, keys: Sequence[str], toolkits: Collection[str]) -> str:
    if len(keys) == 1:
        what = keys[0]
    else:
        kits = len([key for key in keys if key in toolkits])
        parts = [_count(kits, "toolkit")] if kits else []
        parts += [_count(len(keys) - kits, "tool")] if len(keys) > kits else []
        what = " and ".join(parts)
    return {True: f"Turn on {what}", False: f"Turn off {what}", None: f"Reset {what} to default"}[on]


def _word(on: bool | None) -> str:
    return {True: "Turn on", False: "Turn off", None: "Reset to default"}[on]


def _reasons(plan: bulk.Plan, shown: int) -> list[str]:
    reasons = []
    if plan.same:
        reasons.append(
            f"{plan.same} of {shown} {'is' if plan.same == 1 else 'are'} already {words.state(plan.on)}."
        )
    reasons += [f"Skipped: {part.refused}" for part in plan.refused]
    many = len(plan.parts) > 1
    for part in plan.possible:
        for reason in part.reasons:
            head, colon, listed = reason.partition(": ")
            short = f"{head}: {words.listing(listed.rstrip('.').split(', '))}." if colon else reason
            reasons.append(f"{part.agent}: {short}" if many and not reason.startswith(part.agent) else short)
    return reasons


def _effect(plan: bulk.Plan) -> pieces.Effect:
    found = [part.effect for part in plan.possible]
    tools = [sum(one.tools_before for one in found), sum(one.tools_after for one in found)]
    tokens = [sum(one.tokens_before for one in found), sum(one.tokens_after for one in found)]
    breaks = [part for part in ("tools", "system text") if any(part in one.breaks for one in found)]
    policy = model.notes(found[0].policy) if len(found) == 1 else ()
    untouched = () if breaks else ("no change for the model",)
    return pieces.Effect(
        tools_before=words.number(tools[0]),
        tools_after=words.number(tools[1]),
        tools_delta=words.signed(tools[1] - tools[0]),
        tokens_before=words.number(tokens[0]),
        tokens_after=words.number(tokens[1]),
        tokens_delta=words.signed(tokens[1] - tokens[0]),
        notes=(*policy, *model.consequences(breaks, plan.sessions), *untouched),
    )


def _differences(plan: bulk.Plan) -> list[pieces.Difference]:
    if len(plan.parts) == 1 and plan.possible:
        part = plan.possible[0]
        lines = []
        for key, was in part.before.items():
            prefix, name = model.split(key)
            lines.append(
                pieces.Difference(
                    prefix=prefix, what=name, before=words.state(was), after=words.state(plan.on)
                )
            )
        return lines
    return [
        pieces.Difference(
            what=part.agent,
            before=f"{words.tools(part.effect.tools_before)}, {words.about(part.effect.tokens_before)} tokens",
            after=f"{words.tools(part.effect.tools_after)}, {words.about(part.effect.tokens_after)} tokens",
        )
        for part in plan.possible
    ]


def _count(count: int, word: str) -> str:
    return f"{words.number(count)} {word}{'' if count == 1 else 's'}"


def _all(count: int) -> str:
    return "it is" if count == 1 else f"all {words.number(count)} are"
