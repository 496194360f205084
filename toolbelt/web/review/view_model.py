"""The page of everything that waits for an operator: tools to review, and what else needs attention."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolbelt.control.reports import attention
from toolbelt.control.servers import inbox
from toolbelt.web.kit import notices, paging, pieces, texts, words
from toolbelt.web.review import changes, concerns

# On one page; the others follow when these are decided.
MAX_AT_ONCE = 50
# How many findings and agents the question before an approval lists.
MAX_DOUBTS, MAX_AGENTS = 12, 100


def review(
    loaded: inbox.Inbox, *, plugin: str = "", ticked: Collection[str] = (), moved: str = "", **frame: Any
) -> pieces.View:
    """Return what there is to review; ``moved`` is a tool whose version changed while the page was open."""
    shown = loaded.changes
    return pieces.View(
        changes=tuple(
            changes.change(change, ticked=change.key in ticked, moved=change.key == moved) for change in shown
        ),
        waiting=words.tools(loaded.waiting),
        later=loaded.waiting - len(shown),
        unflagged=sum(not change.flags for change in shown),
        flagged=loaded.flagged,
        renamed=any(change.previous for change in shown),
        plugin=plugin,
        plugins=_plugins(loaded.by_plugin, plugin),
        **frame,
    )


def page(
    reviewed: pieces.View, noticed: attention.Attention, filters: Mapping[str, Any], *, path: str
) -> pieces.View:
    """Return the whole page: the review, and a part of what else needs attention."""
    total = concerns.count_others(noticed)
    offset = min(filters["offset"] or 0, total)
    items = tuple(itertools.islice(concerns.other_concerns(noticed), offset, offset + paging.AT_ONCE))
    part = paging.Part(items=items, offset=offset, total=total, size=paging.AT_ONCE)
    return pieces.View(
        review=reviewed,
        concerns=items,
        others=total,
        pages=part.pages(filters, path, anchor="#attention"),
    )


def question(
    shown: Mapping[str, str],
    doubts: Sequence[tuple[str, str]],
    gains: Sequence[inbox.Gain],
    fields: Iterable[tuple[str, str]],
    *,
    action: str,
    back: str,
) -> notices.Confirmation:
    """Return the question before tools are approved: their findings, and what agents get."""
    name = next(iter(shown)) if len(shown) == 1 else words.tools(len(shown))
    getting = [gain for gain in gains if gain.on]
    offered = [gain.agent for gain in gains if gain.on_request]
    effects = [gain.effect for gain in getting]
    return notices.Confirmation(
        title=f"Approve {name}?",
        reasons=tuple(_cautions(doubts, gains)),
        facts=(f"Available on request to {words.counted(len(offered), 'agent')}: {words.listing(offered)}.",)
        if offered
        else (),
        effect=pieces.Effect(
            tools=(sum(each.tools_before for each in effects), sum(each.tools_after for each in effects)),
            tokens=(sum(each.tokens_before for each in effects), sum(each.tokens_after for each in effects)),
        )
        if getting
        else None,
        differences=tuple(
            pieces.Difference(
                what=gain.agent,
                before=f"{words.tools(gain.effect.tools_before)}, {words.about(gain.effect.tokens_before)} tokens",
                after=f"{words.tools(gain.effect.tools_after)}, {words.about(gain.effect.tokens_after)} tokens",
            )
            for gain in getting[:MAX_AGENTS]
        ),
        action=action,
        fields=(*fields, ("next", back), ("confirm", "yes")),
        confirm_word="Approve anyway" if doubts else f"Approve {name}",
        dangerous=bool(doubts) or any(gain.destructive for gain in gains),
        back=back,
    )


def _cautions(doubts: Sequence[tuple[str, str]], gains: Sequence[inbox.Gain]) -> Iterator[str]:
    if doubts:
        yield "Approving a tool sends its texts to every model that gets it. Check these findings first."
        yield from (f"{key}: {texts.visible(flag)}" for key, flag in doubts[:MAX_DOUBTS])
        if len(doubts) > MAX_DOUBTS:
            yield f"And {len(doubts) - MAX_DOUBTS} more."
    destructive = {key for gain in gains for key in gain.destructive}
    if destructive:
        agents = [gain.agent for gain in gains if gain.destructive]
        yield f"Enables {words.tools(len(destructive))} that may be destructive, for {words.listing(agents)}."
    if exceeding := [gain.agent for gain in gains if gain.exceeds_budget]:
        verb = "is" if len(exceeding) == 1 else "are"
        yield f"{words.listing(exceeding)} {verb} over budget afterwards."


def _plugins(by_plugin: Mapping[str, int], chosen: str) -> tuple[pieces.Choice, ...]:
    """Return the plugins to choose from; none, if there is nothing to choose."""
    if len(by_plugin) < 2 and (not chosen or chosen in by_plugin):
        return ()
    labels = {name: texts.visible(name) for name in by_plugin}
    every = pieces.Choice(value="", label="All plugins", chosen=not chosen, count=sum(by_plugin.values()))
    return (every, *pieces.choices(labels, chosen, counts=by_plugin))
