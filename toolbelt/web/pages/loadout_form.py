"""How is the editor of a loadout filled, from what is stored or from what somebody typed?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolbelt.core import catalog, keys
from toolbelt.core import loadouts as rules
from toolbelt.web import drafts, loadout_drafts
from toolbelt.web.presenters import loadouts, pieces

_FIELDS = ("name", "description", "parent", "plugins", "categories", "discoverable", "disabled")


def form(
    stored: catalog.Catalog,
    draft: loadout_drafts.Draft,
    *,
    new: bool,
    action: str,
    back: str,
    seen: str,
    reason: str = "",
    problems: Mapping[str, str],
) -> loadouts.Form:
    """Fill it; ``problems`` are by their places in the entry."""
    installed = {keys.fold(name) for name in stored.plugins}
    return loadouts.Form(
        name=draft.name,
        new=new,
        action=action,
        back=back,
        description=draft.description,
        parents=tuple(_parents(stored, draft, new)),
        plugins=tuple(_choices(stored.plugins, draft.plugins)),
        more=" ".join(name for name in draft.plugins if keys.fold(name) not in installed),
        # One that there is no more stays ticked, for its problem to be seen.
        categories=tuple(
            _choices(
                dict.fromkeys((*catalog.CATEGORIES, *stored.categories, *draft.categories)), draft.categories
            )
        ),
        discoverable="\n".join(draft.discoverable),
        disabled="\n".join(draft.disabled),
        known=(*stored.plugins, *stored.tools),
        reason=reason,
        seen=seen,
        problems=sorted_by_field(problems),
    )


def sorted_by_field(problems: Mapping[str, str]) -> dict[str, str]:
    """Sort what is wrong by the fields of the form; what fits none is under the empty name."""
    said = {field: found for field in _FIELDS if (found := drafts.at(problems, field))}
    rest = [
        message
        for place, message in problems.items()
        if place.partition("[")[0].partition(".")[0] not in _FIELDS
    ]
    return {**said, "": " ".join(rest) or "Look at what is marked."} if problems else {}


def _parents(stored: catalog.Catalog, draft: loadout_drafts.Draft, new: bool) -> Iterator[pieces.Choice]:
    yield pieces.Choice(value="", label="Nothing: it stands on its own", chosen=not draft.parent)
    folded, there = keys.fold(draft.parent), False
    for name in rules.all_names(stored):
        own = not new and keys.fold(name) == keys.fold(draft.name)
        below = not new and any(
            keys.fold(link.name) == keys.fold(draft.name) for link in rules.chain(stored.loadouts, name)
        )
        chosen = keys.fold(name) == folded
        there = there or chosen
        if chosen or not (own or below):
            yield pieces.Choice(value=draft.parent if chosen else name, label=name, chosen=chosen)
    if draft.parent and not there:
        yield pieces.Choice(value=draft.parent, label=draft.parent, chosen=True)


def _choices(known: Mapping[str, object], chosen: tuple[str, ...]) -> Iterator[pieces.Choice]:
    spelled = {keys.fold(name): name for name in chosen}
    listed: set[str] = set()
    for name in known:
        folded = keys.fold(name)
        if folded not in listed:
            listed.add(folded)
            yield pieces.Choice(value=spelled.get(folded, name), label=name, chosen=folded in spelled)
