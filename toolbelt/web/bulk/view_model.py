"""The question before many are set at once, and the notice afterwards."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

from toolbelt.control.access import bulk
from toolbelt.web.kit import confirmations, model_panel, notices, pieces, words

# How many agents or tools the question lists.
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
    """Return the question before a bulk action, with its whole effect."""
    whose = names[0] if len(names) == 1 else f"{len(names)} agents"
    return notices.Confirmation(
        title=f"{_verb(plan.on, keys, toolkits)} for {whose}?",
        reasons=tuple(_reasons(plan)),
        facts=tuple(_facts(plan, len(names) * len(keys))),
        effect=_effect(plan),
        differences=tuple(_differences(plan))[:MAX_LINES],
        action=action,
        fields=(
            ("on", words.stored(plan.on)),
            ("seen", json.dumps(plan.seen)),
            ("next", back),
            ("confirm", "yes"),
        ),
        confirm_word=f"{words.switch_verb(plan.on)}: {words.counted(plan.changes, 'change')}",
        dangerous=any(part.effect.added and part.reasons for part in plan.possible),
        back=back,
    )


def no_changes(plan: bulk.Plan, names: Sequence[str], keys: Sequence[str]) -> str:
    """Return that there is nothing to do, and why."""
    if plan.refused:
        return " ".join(["Nothing was changed.", *(part.refused for part in plan.refused[:3])])
    if not keys:
        return "No changes: the list is empty."
    if plan.absent:
        return "No changes: nothing grants the selected agents any of these tools."
    subject = "it is" if plan.same == 1 else f"all {words.number(plan.same)} are"
    return f"No changes: {subject} already {words.state(plan.on)}."


def summary(seen: bulk.Seen, on: bool | None) -> str:
    """Return what was done."""
    count = sum(len(keys) for keys in seen.values())
    whose = next(iter(seen)) if len(seen) == 1 else f"{len(seen)} agents"
    return f"{words.counted(count, 'change')} for {whose}: {words.state(on)}."


def _verb(on: bool | None, keys: Sequence[str], toolkits: Collection[str]) -> str:
    if len(keys) == 1:
        what = keys[0]
    else:
        kits = len([key for key in keys if key in toolkits])
        parts = [words.counted(kits, "toolkit")] if kits else []
        parts += [words.counted(len(keys) - kits, "tool")] if len(keys) > kits else []
        what = " and ".join(parts)
    return f"Reset {what} to default" if on is None else f"{words.switch_verb(on)} {what}"


def _facts(plan: bulk.Plan, shown: int) -> Iterator[str]:
    if plan.absent:
        yield (
            f"{words.number(plan.absent)} of {words.number(shown)} {'is' if plan.absent == 1 else 'are'} left out:"
            " nothing grants the agent the tool."
        )
    if plan.same:
        yield f"{plan.same} of {shown} {'is' if plan.same == 1 else 'are'} already {words.state(plan.on)}."
    if len(plan.parts) > 1 and (unaffected := sum(not _affected(part) for part in plan.possible)):
        yield f"For {words.counted(unaffected, 'agent')}, nothing changes for the model."


def _reasons(plan: bulk.Plan) -> list[str]:
    reasons = [f"Skipped: {part.refused}" for part in plan.refused]
    many = len(plan.parts) > 1
    for part in plan.possible:
        for reason in part.reasons:
            short = confirmations.short(reason)
            reasons.append(f"{part.agent}: {short}" if many and not reason.startswith(part.agent) else short)
    return reasons


def _effect(plan: bulk.Plan) -> pieces.Effect:
    every = [part.effect for part in plan.possible]
    breaks = [part for part in ("tools", "system text") if any(part in effect.breaks for effect in every)]
    policy = model_panel.notes(every[0].policy) if len(every) == 1 else ()
    untouched = () if breaks else ("no change for the model",)
    return pieces.Effect(
        tools=(sum(effect.tools_before for effect in every), sum(effect.tools_after for effect in every)),
        tokens=(sum(effect.tokens_before for effect in every), sum(effect.tokens_after for effect in every)),
        notes=(*policy, *model_panel.consequences(breaks, plan.sessions), *untouched),
    )


def _differences(plan: bulk.Plan) -> list[pieces.Difference]:
    if len(plan.parts) == 1 and plan.possible:
        return [
            pieces.Difference(what=key, is_tool=True, before=words.state(was), after=words.state(plan.on))
            for key, was in plan.possible[0].before.items()
        ]
    return [
        pieces.Difference(
            what=part.agent,
            before=f"{words.tools(part.effect.tools_before)}, {words.about(part.effect.tokens_before)} tokens",
            after=f"{words.tools(part.effect.tools_after)}, {words.about(part.effect.tokens_after)} tokens",
        )
        for part in plan.possible
        if _affected(part)
    ]


def _affected(part: bulk.Part) -> bool:
    return not part.effect.is_nothing
