"""The form of one entry of a belt: an agent, a toolkit, a tool …

The form contains the entry as its editor saw it. Differences are written through ``control``, all or none. Problems,
such as a field that another operator changed meanwhile, become errors of their fields.
"""

from __future__ import annotations

import functools
import hashlib
import textwrap
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib.admin import widgets
from django.core import exceptions
from django.db import models as orm
from django.utils import timezone

from toolbelt.admin import choices, inputs, rows
from toolbelt.control import writing
from toolbelt.control.access import tools_config
from toolbelt.control.catalog import entries
from toolbelt.core import belts, errors, grants, schema

if TYPE_CHECKING:
    _Form = forms.ModelForm[Any]
else:
    _Form = forms.ModelForm

MAX_SHOWN = 200


class EntryForm(_Form):
    """The form of one entry. Its rows (members, switches …) are formsets, which provide their own keys."""

    # Set for each request.
    kind: ClassVar[belts.KindName]
    write: ClassVar[writing.Write]

    as_loaded = forms.JSONField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(
        required=False,
        widget=widgets.AdminTextInputWidget,
        help_text="Optional; stored in the audit log.",
    )
    confirm = forms.CharField(required=False, widget=inputs.Confirmation, label="Confirm this change")

    def __init__(self, data: Any = None, *args: Any, **options: Any) -> None:
        self.changed_keys: list[str] = []
        row: Any = options.get("instance")
        if data is None and row is not None:
            # Read before the row: a change in between is then shown, and not lost.
            loaded = self._read(str(getattr(row, entries.name_field(self.kind))))
            row.refresh_from_db()
            options["initial"] = {**(options.get("initial") or {}), "as_loaded": loaded}
        if (ends := getattr(row, "block_ends", None)) is not None and ends <= timezone.now():
            # Recorded or not, the block has ended. The row is never saved.
            row.blocked, row.block_ends = False, None
        super().__init__(data, *args, **options)
        for field, names in choices.NAMES.items():
            if field in self.fields:
                self.fields[field].widget = choices.select(
                    names(), self.initial.get(field), self.data.get(field)
                )

    @property
    def formsets(self) -> list[rows.Rows]:
        """Return the formsets of the entry's rows (created by EntryAdmin)."""
        formsets: list[rows.Rows] = self.instance.formsets
        return formsets

    def clean_as_loaded(self) -> dict[str, Any]:
        """Return the entry as of when the form was loaded; the current one if the form does not contain it."""
        loaded = self.cleaned_data["as_loaded"]
        if self.instance.pk is None:
            return {}
        if loaded is None:
            return self._read(self._name())
        if not isinstance(loaded, dict):
            raise exceptions.ValidationError("The form data is incomplete: reload the page and try again.")
        return loaded

    def entry(self) -> dict[str, Any]:
        """Return the keys of the entry that the form shows, in a belt's form. None stands for the default."""
        field_names = belts.KINDS[self.kind].fields or ("name",)
        return {key: self.value(key) for key in self.cleaned_data if key in field_names}

    def value(self, key: str) -> Any:
        """Return the value of a field; None for its default, which a belt omits."""
        value = self.cleaned_data[key]
        column: Any = self.instance._meta.get_field(key)
        if isinstance(value, orm.Model):
            return str(value)
        if isinstance(value, datetime):
            return grants.format_time(value)
        return None if value is None or value == column.get_default() else value

    def field_of(self, key: str, subpath: str) -> str:
        """Return the field for this key of the entry, empty if there is none; ``subpath`` is the rest of the path."""
        return key if key in self.fields else ""

    def _post_clean(self) -> None:
        """Write the entry if the form and its rows are valid; ``control`` checks their values."""
        sound = [formset.is_valid() for formset in self.formsets]
        if all(sound) and not self.errors:
            self._save()

    def _save(self) -> None:
        loaded, entry = self.cleaned_data["as_loaded"], self._submitted()
        write = self.write.replace(reason=self.cleaned_data["reason"])
        name = entry.get(entries.name_field(self.kind)) or self._name()
        changes: dict[str, Any] = {}
        try:
            if self.instance.pk is None:
                changes = {key: value for key, value in entry.items() if value is not None}
                write = write.replace(confirm=self.cleaned_data["confirm"] == _digest(changes))
                entries.create(write, self.kind, changes)
            else:
                now = self._read(name)
                changes = {
                    key: value
                    for key, value in entry.items()
                    if not _is_same(value, loaded.get(key)) and not _is_same(value, now.get(key))
                }
                if changes:
                    write = write.replace(confirm=self.cleaned_data["confirm"] == _digest(changes))
                    was = {key: loaded.get(key) for key in changes}
                    entries.change(write, self.kind, name, changes, was=was)
        except errors.Invalid as error:
            self._refuse(self._placed(name, problem) for problem in error.problems)
        except errors.Stale as error:
            self._refuse(
                (
                    key,
                    str(errors.Stale(f"{key} of {name}", _shown(loaded.get(key)), _shown(now), by=error.by)),
                )
                for key, now in error.fields.items()
            )
            # The editor sees these values now: submitting the form again overwrites them.
            data: Any = self.data.copy()  # type: ignore[attr-defined]
            data["as_loaded"] = schema.canonical({**loaded, **error.fields})
            self.data = data
        except errors.ConfirmationRequired as error:
            self._refuse([("confirm", _effect(changes, error))])
            self.fields["confirm"].widget.digest = _digest(changes)
        except entries.NameTaken as error:
            self._refuse([(entries.name_field(self.kind), str(error))])
        except errors.ToolbeltError as error:
            # A problem with a single switch is shown at its row.
            [only] = changes if len(changes) == 1 else [""]
            self._refuse([(only if only.startswith(tools_config.SINGLE) else "", str(error))])
        self.changed_keys = list(changes)

    def _submitted(self) -> dict[str, Any]:
        """Return the entry from the form and its rows; a switch or override without a row is unset."""
        entry: dict[str, Any] = {}
        for formset in self.formsets:
            if "tools_config" in formset.keys:
                loaded = self.cleaned_data["as_loaded"]
                entry |= {key: None for key in loaded if key.startswith(tools_config.SINGLE)}
        entry |= self.entry()
        for formset in self.formsets:
            entry |= formset.entry()
        return entry

    def _refuse(self, problems: Iterable[tuple[str, str]]) -> None:
        """Add an error for each problem at its field."""
        self.add_error(None, "Nothing was saved.")
        # Find all fields first: a field with an error no longer has a value that identifies its row.
        for add in [self._place(path, message) for path, message in problems]:
            add()

    def _place(self, path: str, message: str) -> Callable[[], None]:
        for formset in self.formsets:
            if (add := formset.error_adder(path, message)) is not None:
                return add
        key, subpath = rows.split(path)
        field = self.field_of(key, subpath)
        text = f"{path}: {message}" if path and (subpath or not field) else message
        return functools.partial(self.add_error, field or None, text)

    def _placed(self, name: str, problem: errors.Problem) -> tuple[str, str]:
        """Return the path of a problem within the entry, and its message, which names anything outside the entry."""
        if self.kind == "category":
            return "name", problem.message
        address = belts.address(self.kind, {entries.name_field(self.kind): name})
        path = problem.path.removeprefix(f"{address}.")
        if path == problem.path:
            return "", problem.message if path == address else str(problem)
        return path, problem.message

    def _name(self) -> str:
        return str(getattr(self.instance, entries.name_field(self.kind)))

    def _read(self, name: str) -> dict[str, Any]:
        return tools_config.as_single(entries.read(self.kind, name))


def _is_same(first: Any, second: Any) -> bool:
    """Return whether two values are equal as JSON, apart from line breaks, which browsers change."""
    if isinstance(first, str) and isinstance(second, str):
        return inputs.unbroken(first) == inputs.unbroken(second)
    try:
        return schema.same(first, second)
    except RecursionError:
        # Nested too deeply to be stored, which ``control`` will refuse.
        return False


def _digest(changes: Mapping[str, Any]) -> str:
    """Return the digest that the confirmation of exactly these changes contains."""
    return hashlib.sha256(schema.canonical(dict(changes)).encode()).hexdigest()


def _effect(changes: Mapping[str, Any], error: errors.ConfirmationRequired) -> str:
    """Return the text of the confirmation: what changes, why it needs one, and its effect."""
    effect = error.differences
    parts = [
        f"{key.removeprefix(tools_config.SINGLE)} {errors.describe_value(changes[key])}"
        if key.startswith(tools_config.SINGLE)
        # As the dashboard names fields: "policy when off".
        else key.replace("_", " ")
        for key in sorted(changes)
    ]
    # Without the paths, which are for files.
    reasons = [problem["message"] for problem in effect.get("unresolved", ())] or error.reasons
    words = [f"{', '.join(parts)}: {' '.join(reasons)}"]
    if "tools" not in effect:
        return words[0]
    words.append("Tools {} → {}, tokens {} → {}.".format(*effect["tools"], *effect["tokens"]))
    for text, key in (("Adds", "added"), ("Removes", "removed")):
        if effect[key]:
            words.append(f"{text}: {', '.join(effect[key])}.")
    return " ".join(words)


def _shown(value: Any) -> Any:
    """Return a value, shortened to fit into a sentence."""
    if value is None or isinstance(value, bool) or (isinstance(value, dict) and "ends" in value):
        return value
    text = value if isinstance(value, str) else schema.canonical(value)
    return textwrap.shorten(text, MAX_SHOWN, placeholder=" …")
