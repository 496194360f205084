"""The page of everything that waits for an operator: tools to review, and what else needs attention."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

from toolbelt.control.reports import attention
from toolbelt.control.servers import inbox
from toolbelt.web.kit import paging, pieces, texts, words
from toolbelt.web.review import changes, concerns

# On one page; the others follow when these are decided.
MAX_AT_ONCE = 50


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


def _plugins(by_plugin: Mapping[str, int], chosen: str) -> tuple[pieces.Choice, ...]:
    """Return the plugins to choose from; none, if there is nothing to choose."""
    if len(by_plugin) < 2 and (not chosen or chosen in by_plugin):
        return ()
    labels = {name: texts.visible(name) for name in by_plugin}
    every = pieces.Choice(value="", label="All plugins", chosen=not chosen, count=sum(by_plugin.values()))
    return (every, *pieces.choices(labels, chosen, counts=by_plugin))
