"""Reading and writing of configuration as entries of a belt.

An entry is one category, plugin, tool, toolkit, loadout, agent, sub-app or gate rule in the form of a belt
(:mod:`toolbelt.core.belts`), without default values. Categories, which are bare names in a belt, are ``{"name": …}``
here. Whether an entry is valid is not checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from django.db import models as orm

from toolbelt import models
from toolbelt.core import belts, errors
from toolbelt.core import catalog as values
from toolbelt.store import agents, catalog, clock, references, writing

_VALUES: Mapping[str, Callable[..., Iterable[Any]]] = {
    "category": catalog.categories,
    "plugin": catalog.plugins,
    "tool": catalog.tools,
    "toolkit": catalog.toolkits,
    "loadout": catalog.loadouts,
    "agent": agents.load_all,
    "sub_app": catalog.sub_apps,
    "gate_rule": catalog.gate_rules,
}


def read(kind: str, name: str, *, with_secrets: bool = False) -> dict[str, Any] | None:
    """Return the entry as it is stored, without a block that has ended, or None. Without ``with_secrets``, secrets in
    options are withheld.
    """
    kind_ = _kind(kind)
    if "\0" in name:
        return None  # PostgreSQL rejects such a parameter
    for value in _VALUES[kind_](**{writing.named_by(kind_): name}):
        entry = belts.entry(kind_, values.as_of(value, clock.now()), with_secrets=with_secrets)
        return {"name": entry} if kind_ == "category" else entry
    return None


def write(kind: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Change the rows to match the whole entry, in which withheld options keep what is stored; return the entry as it
    is stored. A block that has ended is not stored.
    """
    kind_ = _kind(kind)
    name = entry[writing.named_by(kind_)]
    if belts.has_withheld(kind_, entry):
        entry = belts.restored(kind_, entry, read(kind_, name, with_secrets=True))
    value = belts.value(kind_, name if kind_ == "category" else dict(entry), _referenced(kind_, entry))
    value = values.as_of(value, clock.now())
    writing.put(kind_, name, {} if kind_ == "category" else belts.entry(kind_, value, with_secrets=True))
    stored = read(kind, name)
    if stored is None:
        raise errors.NotFound(belts.KINDS[kind_].word, name)
    return stored


def delete(kind: str, name: str) -> None:
    """Delete the entry and what belongs to it; raise errors.NotFound, or errors.Refused if it is in use."""
    kind_ = _kind(kind)
    row = writing.ROWS[kind_]._default_manager.filter(**{writing.named_by(kind_): name}).first()
    if row is None:
        raise errors.NotFound(belts.KINDS[kind_].word, name, names(kind))
    try:
        row.delete()
    except orm.ProtectedError as error:
        users = ", ".join(references.users(kind, name))
        raise errors.Refused(f"{name} is used by {users}: change that first.") from error


def export(*, with_secrets: bool = False) -> dict[str, Any]:
    """Return the whole configuration as a belt, in stored order, without blocks that have ended. Without
    ``with_secrets``, secrets in options are withheld.
    """
    stored = agents.load_all()
    belt = belts.Belt(
        catalog=catalog.load().as_of(clock.now()), agents={agent.key: agent for agent in stored}
    )
    return belts.dump(belt, with_secrets=with_secrets)


def names(kind: str) -> list[str]:
    """Return the names of all entries of this kind, in stored order."""
    kind_ = _kind(kind)
    return list(writing.ROWS[kind_]._default_manager.values_list(writing.named_by(kind_), flat=True))


def is_ordered(kind: str) -> bool:
    """Return whether operators choose the order of entries of this kind."""
    return writing.is_ordered(writing.ROWS[_kind(kind)])


def order(kind: str, names: Iterable[str]) -> None:
    """Put all entries of this kind in this order."""
    writing.order(_kind(kind), names)


def users(kind: str, name: str) -> list[str]:
    """Return in words what refers to this entry, such as "the agent assistant"."""
    return references.users(kind, name)


def _kind(kind: str) -> belts.KindName:
    if kind not in belts.KINDS:
        raise errors.NotFound("kind of entry", kind, belts.KINDS)
    return cast(belts.KindName, kind)


def _referenced(kind: belts.KindName, entry: Mapping[str, Any]) -> values.Catalog:
    """Return a catalog with only what the entry may refer to, because reading everything would be slow."""
    names_ = set(_named_tools(kind, entry))
    tools = models.Tool.objects.filter(key__in=names_).values_list("key", flat=True) if names_ else ()
    toolkits = models.Toolkit.objects.filter(key__in=names_).values_list("key", flat=True) if names_ else ()
    return values.compile_(
        categories=catalog.categories() if kind in ("plugin", "tool") else (),
        tools=[values.Tool(key=key) for key in tools],
        toolkits=[values.Toolkit(key=key) for key in toolkits],
    )


def _named_tools(kind: belts.KindName, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in the fields of an entry that name tools and toolkits."""
    for field, names in belts.naming(belts.KINDS[kind].model).items():
        values_ = entry.get(field) if names.kind.startswith("tool") else None
        for item in values_ if isinstance(values_, (list, tuple, Mapping)) else ():
            name = item.get("tool") if isinstance(item, Mapping) else item
            if isinstance(name, str):
                yield name
