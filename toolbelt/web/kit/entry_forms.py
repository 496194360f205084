"""The form of one configured entry: a loadout, a sub-app, a toolkit, or the settings of an agent.

A form is always filled, with what is stored or with what was typed, valid or not. It does not validate an entry:
control does, and the editor adds its problems at their fields.
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
    """The action of a button on the rows of an editor: ``up``, ``down`` or ``drop`` one of them, ``add`` what was typed
    or selected, or add ``all`` tools that were found.
    """

    verb: str
    rows: str
    place: int

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> RowAction | None:
        """Return the action of the button that was pressed: ``up-members-2``."""
        match = re.fullmatch(r"(up|down|drop|add|all)-(\w+)-(\d{1,4})", str(data.get("act", "")))
        return cls(verb=match[1], rows=match[2], place=int(match[3])) if match else None

    def apply(self, rows: Sequence[_T]) -> tuple[_T, ...]:
        """Move a row or remove it; an impossible action leaves the rows as they are."""
        done, place = list(rows), self.place
        if place >= len(done):
            return tuple(done)
        if self.verb == "drop":
            del done[place]
        other = {"up": place - 1, "down": place + 1}.get(self.verb, -1)
        if 0 <= other < len(done):
            done[place], done[other] = done[other], done[place]
        return tuple(done)


class EntryForm(kit.Fields, kit.Change):
    """The form of one entry. ``initial`` are its fields as the page showed them: what differs from those is changed.

    Without a ``name``, the entry does not exist yet, and the form asks for one.
    """

    entry_kind: ClassVar[belts.KindName]
    # The fields with the names and values of the entry.
    plain: ClassVar[tuple[str, ...]] = ()
    # Those that hold names, whose stored order and spelling is kept.
    lists: ClassVar[tuple[str, ...]] = ()
    # The fields that show problems of other places of the entry.
    fields_of: ClassVar[Mapping[str, str]] = {}
    # The keys whose items are rows, which show their own problems.
    rows_of: ClassVar[frozenset[str]] = frozenset()

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
        # What is wrong, by its place in the entry.
        self.problems: dict[str, str] = {}
        # Typed words that are no keys of tools, and the tools that they find; whether they were among keys.
        self.looked_up = ""
        self.is_key_list = False
        self.found: tuple[catalog.Tool, ...] = ()
        self.full_clean()
        # Django forgets the value of a field that has an error; an entry is still shown with it.
        self.given = dict(self.cleaned_data)

    @classmethod
    def initial_of(cls, value: Any) -> dict[str, Any]:
        """Return the fields of the form for an entry that is stored."""
        lists = {name: list(getattr(value, name)) for name in cls.lists}
        return {name: getattr(value, name) for name in cls.plain} | lists

    def offer(self, stored: catalog.Catalog) -> None:
        """Set the choices; only a form that is shown needs them."""

    def tools_to_add(self, rows: str, names: Sequence[str]) -> Sequence[str]:
        """Return the tools that a field adds to these rows. The button beside it adds those whose keys were typed, and
        looks up all other text.
        """
        if self.row_action is None or self.row_action.rows != rows:
            return names
        if self.row_action.verb == "all":
            return fields.split_names(str(self.data.get("shown", "")))
        if self.row_action.verb != "add":
            return names
        stored = access_index.catalog_view().catalog
        known, unknown = fields.split_keys(stored, names)
        self.looked_up, self.is_key_list = " ".join(unknown), bool(known)
        if not known:
            self.found = tuple(fields.find_tools(stored, self.looked_up))
        return known

    def entry(self) -> dict[str, Any]:
        """Return every key that the form shows; None stands for the default."""
        lists = {name: merge(self.given[name], self.initial.get(name, ())) for name in self.lists}
        return {name: self.given[name] or None for name in self.plain} | {
            name: names or None for name, names in lists.items()
        }

    def check_rows(self) -> Mapping[str, str]:
        """Return the problems of rows that cannot be part of an entry, by their place in it."""
        return {}

    def check_draft(self) -> Mapping[str, str]:
        """Return the problems of an entry that is still being typed, by their place in it."""
        return {}

    def changes(self) -> dict[str, Any]:
        """Return the changes since the page was shown. A browser may send other line ends than it received."""
        shown = type(self)(self.initial, name=self.entry_name, initial=self.initial).entry()
        return {key: value for key, value in self.entry().items() if value != shown[key]}

    def show_problems(self, problems: Mapping[str, str], *, is_saved: bool) -> None:
        """Add each problem at the field or row that shows its place, and above the form if there is none."""
        self.problems = dict(problems)
        for place, message in problems.items():
            key = re.split(r"[.\[]", place, maxsplit=1)[0]
            if key not in self.rows_of or key == place:
                self.add_error(self.field_at(place), message)
        if (problems or self.errors) and is_saved and not self.non_field_errors():
            self.problems[""] = "Fix the fields marked below."
            self.add_error(None, self.problems[""])

    def field_at(self, place: str) -> str | None:
        """Return the field that shows the problems at a place of the entry: ``plugins`` for ``plugins[2]``."""
        key = re.split(r"[.\[]", place, maxsplit=1)[0]
        field = self.fields_of.get(key, key)
        return field if field in self.fields else None


def read_was(posted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry that the page was made from; empty if it is invalid."""
    try:
        entry = json.loads(str(posted.get("was", "")))
        # Half a character can be written in JSON, but not be stored or shown.
        json.dumps(entry, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def merge(names: Iterable[str], stored: Sequence[str]) -> list[str]:
    """Return the names, each once whatever its case: stored ones first, in their stored order and spelling."""
    folded = {keys.fold(name): name for name in reversed(list(names))}
    kept = [name for name in stored if folded.pop(keys.fold(name), None) is not None]
    return kept + list(reversed(folded.values()))


def problems_by_place(address: str, problems: Iterable[errors.Problem]) -> dict[str, str]:
    """Return the messages by their place in the entry: ``members[2]``; those about something else under ""."""
    messages: dict[str, list[str]] = {}
    for problem in problems:
        place = problem.path.removeprefix(f"{address}.")
        is_inside = place != problem.path
        messages.setdefault(place if is_inside else "", []).append(
            problem.message if is_inside else str(problem)
        )
    return {place: " ".join(texts) for place, texts in messages.items()}


def choices(names: Iterable[str], chosen: Iterable[str]) -> list[tuple[str, str]]:
    """Return names to choose from, each once whatever its case; a chosen one keeps the spelling of the choice."""
    spelled = {keys.fold(name): name for name in chosen}
    listed: dict[str, str] = {}
    for name in names:
        listed.setdefault(keys.fold(name), name)
    return [(spelled.get(folded, name), name) for folded, name in listed.items()]
