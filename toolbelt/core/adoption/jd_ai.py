"""JD.AI's loadouts (seed: Tool Loadouts): a ``*.loadout.yaml`` file, or the JSON of one ``ToolLoadout`` or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import catalog, keys
from toolbelt.core.adoption import reading

_KNOWN = {
    "name": "name",
    "description": "description",
    **dict.fromkeys(("parentloadoutname", "parentname", "parent", "extends"), "parent"),
    **dict.fromkeys(("defaultplugins", "includeplugins", "includedplugins", "plugins"), "plugins"),
    **dict.fromkeys(("includedcategories", "includecategories", "categories"), "categories"),
    **dict.fromkeys(("discoverablepatterns", "discoverable"), "discoverable"),
    **dict.fromkeys(("disabledplugins", "excludeplugins", "excludedplugins", "disabled"), "disabled"),
}
# Spellings that only JD.AI has: a belt's loadout has none of them.
_FOREIGN = frozenset(_KNOWN) - {"name", "description", *_KNOWN.values()}
_LISTS = ("plugins", "categories", "discoverable", "disabled")
_NO_DENIAL = "disabledPlugins, with the names of their plugins: Toolbelt cannot exclude a category"
_MISPLACED = dict.fromkeys(("excludecategories", "excludedcategories", "disabledcategories"), _NO_DENIAL)


def recognizes(document: Any) -> bool:
    """Return whether this is a loadout of JD.AI's, a list of them, or a list under ``loadouts``."""
    if isinstance(document, Mapping) and set(document) == {"loadouts"}:
        document = document["loadouts"]
        return isinstance(document, list) and any(map(_is_foreign, document))
    if isinstance(document, list):
        return bool(document) and all(map(_is_loadout, document))
    return _is_loadout(document)


def convert(document: Any, reader: reading.Reader) -> reading.Adopted:
    """Return the belt of one loadout or several; each replaces one with the same name."""
    loadouts = [_loadout(path, entry, reader) for path, entry in _listed(document, reader)]
    return reader.adopted("jd-ai", {"loadouts": [loadout for loadout in loadouts if loadout]})


def _listed(document: Any, reader: reading.Reader) -> Iterator[tuple[str, Any]]:
    if isinstance(document, Mapping) and "loadouts" in document:
        yield from reader.items(document["loadouts"], "loadouts")
    elif isinstance(document, list):
        yield from ((f"[{position}]", item) for position, item in enumerate(document))
    else:
        yield "", document


def _loadout(path: str, entry: Any, reader: reading.Reader) -> dict[str, Any]:
    unused = "A loadout has no counterpart for it."
    fields = reader.fields(entry, path, _KNOWN, misplaced=_MISPLACED, unused=unused)
    if not fields:
        return {}
    at, value = fields.get("name", (reading.join(path, "name"), None))
    name = reader.text(value, at)
    if not name.strip():
        reader.report(at, "A loadout needs a name.")
    belt_path = f"loadouts.{name}"
    reader.paths |= {belt_path: path, **{f"{belt_path}.{field}": at for field, (at, _) in fields.items()}}
    loadout: dict[str, Any] = {"name": name}
    for field in ("description", "parent"):
        if field in fields and (text := reader.text(*reversed(fields[field]))):
            loadout[field] = text
    for field in _LISTS:
        at, value = fields.get(field, ("", None))
        if field == "categories":
            loadout[field] = _categories(value, at, reader)
        else:
            loadout[field] = reader.texts(value, at)
    return {field: value for field, value in loadout.items() if value}


def _categories(value: Any, path: str, reader: reading.Reader) -> list[str]:
    """Return categories as Toolbelt spells them. .NET writes a member of an enumeration as its number by default."""
    categories = []
    for at, item in reader.items(value, path):
        if isinstance(item, int) and not isinstance(item, bool):
            if not 0 <= item < len(catalog.CATEGORIES):
                reader.report(at, f"There is no category with the number {item}: write its name.")
                continue
            categories.append(catalog.CATEGORIES[item])
            reader.note(at, f"Number {item} is read as {categories[-1]}, by the order of ToolCategory.")
            continue
        name = reader.text(item, at)
        categories.append(keys.fold(name) if keys.fold(name) in catalog.CATEGORIES else name)
    return categories


def _is_loadout(item: Any) -> bool:
    is_named = isinstance(item, Mapping) and any(reading.normal(str(key)) == "name" for key in item)
    return is_named and (_is_foreign(item) or _has_only_known(item))


def _is_foreign(item: Any) -> bool:
    return isinstance(item, Mapping) and any(reading.normal(str(key)) in _FOREIGN for key in item)


def _has_only_known(item: Mapping[Any, Any]) -> bool:
    return all(reading.normal(str(key)) in _KNOWN for key in item)
