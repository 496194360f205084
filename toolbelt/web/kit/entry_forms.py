"""The form of one configured entry: a loadout, a sub-app, a toolkit, or the settings of an agent.

A form always has values: the stored ones, or those that were typed, valid or not. It does not validate an entry:
control does, and the editor adds the problems to their fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from toolbelt.control.access import access_index
from toolbelt.core import belts, catalog, errors, keys
from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAction:
    """The action of a button on the rows of an editor: move a row ``up`` or ``down``, ``drop`` it, ``add`` the typed or
    selected tools, or add ``all`` tools that the text found.
    """

    verb: str
    rows: str
    position: int

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> RowAction | None:
        """Return the action of the button that was pressed: ``up-members-2``."""
        match = re.fullmatch(r"(up|down|drop|add|all)-(\w+)-(\d{1,4})", str(data.get("act", "")))
        return cls(verb=match[1], rows=match[2], position=int(match[3])) if match else None

    def apply(self, rows: Sequence[_T]) -> tuple[_T, ...]:
        """Move a row or remove it; an impossible action leaves the rows as they are."""
        result, position = list(rows), self.position
        if position >= len(result):
            return tuple(result)
        if self.verb == "drop":
            del result[position]
        other = {"up": position - 1, "down": position + 1}.get(self.verb, -1)
        if 0 <= other < len(result):
            result[position], result[other] = result[other], result[position]
        return tuple(result)


class EntryForm(kit.Fields, kit.Change):
    """The form of one entry. ``initial`` has its fields as the page showed them: fields that differ are changed.

    Without a ``name``, the entry does not exist yet, and the form asks for one.
    """

    entry_kind: ClassVar[belts.KindName]
    # The fields that have the same names and values as the keys of the entry.
    plain_fields: ClassVar[tuple[str, ...]] = ()
    # The fields that hold names; the stored order and spelling of the names is kept.
    list_fields: ClassVar[tuple[str, ...]] = ()
    # The field that shows the problems of a key, if it does not have the name of the key.
    fields_by_key: ClassVar[Mapping[str, str]] = {}
    # The keys whose items are rows, which show their own problems.
    row_keys: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, data: Mapping[str, Any], *, name: str = "", initial: Mapping[str, Any]) -> None:
        super().__init__(data, initial=dict(initial))
        self.naming = belts.KINDS[self.entry_kind].named_by
        self.is_new = not name
        self.entry_name = name or str(data.get(self.naming, "")).strip()
        if name:
            self.fields.pop(self.naming, None)
        for field in self.fields.values():
            field.validators = []
        self.row_action = RowAction.read(data)
        # The messages by their path in the entry.
        self.problems: dict[str, str] = {}
        # The typed words that are not keys of tools, whether keys were typed too, and the tools that the words find.
        self.search_text = ""
        self.is_key_list = False
        self.matching_tools: tuple[catalog.Tool, ...] = ()
        self.full_clean()
        # Django drops the value of a field that has an error, but the form still shows it.
        self.values = dict(self.cleaned_data)

    @classmethod
    def initial_of(cls, value: Any) -> dict[str, Any]:
        """Return the fields of the form for an entry that is stored."""
        lists = {name: list(getattr(value, name)) for name in cls.list_fields}
        return {name: getattr(value, name) for name in cls.plain_fields} | lists

    def set_choices(self, stored: catalog.Catalog) -> None:
        """Set the choices of the fields; only a form that is rendered needs them."""

    def tools_to_add(self, rows: str, names: Sequence[str]) -> Sequence[str]:
        """Return the tools that a field adds to these rows. Its button adds the tools whose keys were typed, and
        searches for all other text.
        """
        if self.row_action is None or self.row_action.rows != rows:
            return names
        if self.row_action.verb == "all":
            return fields.split_names(str(self.data.get("shown", "")))
        if self.row_action.verb != "add":
            return names
        stored = access_index.catalog_view().catalog
        known, unknown = fields.split_keys(stored, names)
        self.search_text, self.is_key_list = " ".join(unknown), bool(known)
        if not known:
            self.matching_tools = tuple(fields.find_tools(stored, self.search_text))
        return known

    def entry(self) -> dict[str, Any]:
        """Return every key of the form with its value; None means the default."""
        lists = {name: merge(self.values[name], self.initial.get(name, ())) for name in self.list_fields}
        return {name: self.values[name] or None for name in self.plain_fields} | {
            name: names or None for name, names in lists.items()
        }

    def check_rows(self) -> Mapping[str, str]:
        """Return the messages about rows that cannot be part of an entry, by path."""
        return {}

    def check_draft(self) -> Mapping[str, str]:
        """Return the messages about an entry that is still being typed, by path."""
        return {}

    def changes(self) -> dict[str, Any]:
        """Return the changes to what the page showed. A browser may send other line ends than it received."""
        before = type(self)(self.initial, name=self.entry_name, initial=self.initial).entry()
        return {key: value for key, value in self.entry().items() if value != before[key]}

    def show_problems(self, problems: Mapping[str, str], *, is_saved: bool) -> None:
        """Add each message to the field or row of its path, or above the form if there is none."""
        self.problems = dict(problems)
        for path, message in problems.items():
            key = re.split(r"[.\[]", path, maxsplit=1)[0]
            if key not in self.row_keys or key == path:
                self.add_error(self.field_at(path), message)
        if (problems or self.errors) and is_saved and not self.non_field_errors():
            self.problems[""] = "Fix the fields marked below."
            self.add_error(None, self.problems[""])

    def field_at(self, path: str) -> str | None:
        """Return the field that shows the problems of a path in the entry: ``plugins`` for ``plugins[2]``."""
        key = re.split(r"[.\[]", path, maxsplit=1)[0]
        field = self.fields_by_key.get(key, key)
        return field if field in self.fields else None


def read_was(posted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry that the page was made from; empty if it is invalid."""
    try:
        entry = json.loads(str(posted.get("was", "")))
        # JSON can contain a lone surrogate, which cannot be stored or shown.
        json.dumps(entry, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def merge(names: Iterable[str], stored: Sequence[str]) -> list[str]:
    """Return the names without duplicates (case-insensitive): stored names first, in their order and spelling."""
    folded = {keys.fold(name): name for name in reversed(list(names))}
    known = [name for name in stored if folded.pop(keys.fold(name), None) is not None]
    return known + list(reversed(folded.values()))


def problems_by_path(address: str, problems: Iterable[errors.Problem]) -> dict[str, str]:
    """Return the messages by their path in the entry: ``members[2]``; messages about anything else have the path ""."""
    messages: dict[str, list[str]] = {}
    for problem in problems:
        path = problem.path.removeprefix(f"{address}.")
        is_inside = path != problem.path
        messages.setdefault(path if is_inside else "", []).append(
            problem.message if is_inside else str(problem)
        )
    return {path: " ".join(texts) for path, texts in messages.items()}


def choices(names: Iterable[str], chosen: Iterable[str]) -> list[tuple[str, str]]:
    """Return names to choose from, without duplicates (case-insensitive); a chosen name keeps its own spelling."""
    spelled = {keys.fold(name): name for name in chosen}
    listed: dict[str, str] = {}
    for name in names:
        listed.setdefault(keys.fold(name), name)
    return [(spelled.get(folded, name), name) for folded, name in listed.items()]
