"""What is configured, as entries of a belt: the one vocabulary of writes.

An entry is one category, plugin, tool, toolkit, loadout, agent or sub-app, in the shape in which a belt holds it
(:mod:`toolbelt.core.belts`); what has its default is left out. Categories, which a belt holds as bare names, are
``{"name": …}`` here. Whether an entry is sound is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from django.db import models as orm

from toolbelt import models
from toolbelt.core import belts, errors
from toolbelt.core import catalog as values
from toolbelt.store import agents, catalog, references, writing

_VALUES: Mapping[str, Callable[..., Iterable[Any]]] = {
    "category": catalog.categories,
    "plugin": catalog.plugins,
    "tool": catalog.tools,
    "toolkit": catalog.toolkits,
    "loadout": catalog.loadouts,
    "agent": agents.every,
    "sub_app": catalog.sub_apps,
}


def read(kind: str, name: str) -> dict[str, Any] | None:
    """Give the entry as it is stored, None if it is not."""
    known = _known(kind)
    if "\0" in name:
        return None  # PostgreSQL cannot even be asked for it
    for value in _VALUES[known](**{writing.named_by(known): name}):
        entry = belts.entry(known, value)
        return {"name": entry} if known == "category" else entry
    return None


def write(kind: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Make the rows be as the entry says, whole; give the entry as it is stored then."""
    known = _known(kind)
    name = entry[writing.named_by(known)]
    value = belts.value(known, name if known == "category" else dict(entry), _around(known, entry))
    writing.put(known, name, {} if known == "category" else belts.entry(known, value))
    stored = read(kind, name)
    if stored is None:
        raise errors.NotFound(belts.KINDS[known].word, name)
    return stored


def delete(kind: str, name: str) -> None:
    """Delete it with what is its own. Raises errors.NotFound, and errors.Refused while something needs it."""
    known = _known(kind)
    row = writing.ROWS[known]._default_manager.filter(**{writing.named_by(known): name}).first()
    if row is None:
        raise errors.NotFound(belts.KINDS[known].word, name, names(kind))
    try:
        row.delete()
    except orm.ProtectedError as error:
        users = ", ".join(references.users(kind, name))
        raise errors.Refused(f"{name} is used by {users}: change that first.") from error


def export() -> dict[str, Any]:
    """Give the whole configuration as a belt, in stored order."""
    stored = agents.every()
    return belts.dump(belts.Belt(catalog=catalog.load(), agents={agent.key: agent for agent in stored}))


def names(kind: str) -> list[str]:
    """Name everything of this kind, in stored order."""
    known = _known(kind)
    return list(writing.ROWS[known]._default_manager.values_list(writing.named_by(known), flat=True))


def is_ordered(kind: str) -> bool:
    """Say whether entries of this kind stand in an order that somebody chose."""
    return writing.is_ordered(writing.ROWS[_known(kind)])


def order(kind: str, names: Iterable[str]) -> None:
    """Let all entries of this kind stand as they are named here."""
    writing.order(_known(kind), names)


def users(kind: str, name: str) -> list[str]:
    """Say in words what refers to this, such as "the agent assistant"."""
    return references.users(kind, name)


def _known(kind: str) -> belts.KindName:
    if kind not in belts.KINDS:
        raise errors.NotFound("kind of entry", kind, belts.KINDS)
    return cast(belts.KindName, kind)


def _around(kind: belts.KindName, entry: Mapping[str, Any]) -> values.Catalog:
    """Give a catalog that knows what the entry may name, and no more: reading it all would cost what it counts."""
    named = set(_texts(entry)) if kind in ("toolkit", "agent", "sub_app") else set()
    tools = models.Tool.objects.filter(key__in=named).values_list("key", flat=True) if named else ()
    toolkits = models.Toolkit.objects.filter(key__in=named).values_list("key", flat=True) if named else ()
    return values.compile_(
        categories=catalog.categories() if kind in ("plugin", "tool") else (),
        tools=[values.Tool(key=key) for key in tools],
        toolkits=[values.Toolkit(key=key) for key in toolkits],
    )


_NAMING_FIELDS = ("members", "tools", "tools_config", "allowed_toolkits", "initial_toolkits", "tool_names")


def _texts(entry: Mapping[str, Any]) -> Iterator[str]:
    """Give the texts in those fields of an entry that name tools and toolkits."""
    for field in _NAMING_FIELDS:
        given = entry.get(field)
        for one in given if isinstance(given, (list, tuple, Mapping)) else ():
            name = one.get("tool") if isinstance(one, Mapping) else one
            if isinstance(name, str):
                yield name
