"""The form of a toolkit, and of a trial."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings

from toolbelt.control.catalog import proposals
from toolbelt.core import belts, catalog, secret_texts
from toolbelt.web.kit import entry_forms, fields, filters, words

# The most rows of the editor; a belt has no limit.
MAX_ROWS = 300
_MEMBER = ("member", "note", "options")
_TRIGGER = ("name", "any", "every", "none", "about", "focus", "choice")
# The most fields of a form outside of its rows.
_OTHER_FIELDS = 30
# The fields of a trigger, by their keys in its entry.
_TRIGGER_KEYS = {"all": "every", "tool_choice": "choice"}


def options_text(member: catalog.Member) -> str:
    """Return the options of a member as JSON, without secrets; empty if it has none."""
    if member.options is None:
        return ""
    return json.dumps(secret_texts.withheld("", member.options), ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A trigger, and whether it matches the message of a trial, and as the first one."""

    trigger: catalog.Trigger
    fires: bool
    decides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """A member in the editor: what was typed, and the problems."""

    member: str
    note: str
    options: str
    about: str
    problem: str
    options_problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRow:
    """A trigger in the editor: what was typed, the result of a trial, and the problems by field."""

    name: str
    any: str
    every: str
    none: str
    about: str
    focus: str
    choice: str
    trial: Tried | None
    problems: Mapping[str, str]


class Trial(filters.FindAgents):
    """A message to try on a toolkit, the agent whose tools are used, and the filter of the agents beside it."""

    message = forms.CharField(required=False, max_length=4000)
    whose = forms.CharField(required=False, max_length=64)


class Toolkit(entry_forms.EntryForm):
    """The form of a toolkit. Its members and triggers are rows, which buttons move, remove and add.

    Each line of a trigger is a pattern; an empty line separates the groups of ``every``.
    """

    entry_kind = "toolkit"
    plain_fields = ("title", "description", "policy", "policy_when_off", "examples")
    list_fields = ("brings",)
    fields_by_key = {"members": "add_members"}
    row_keys = frozenset({"members", "triggers", "tool_notes"})

    key = forms.CharField(
        required=False, help_text="Its name in switches, for agents and for models: letters, digits, _ and -."
    )
    title = forms.CharField(required=False)
    description = fields.Text(
        rows=2,
        help_text="What the toolkit is for. Operators see it, and so do agents that may load the toolkit.",
    )
    policy = fields.Text(
        rows=7,
        label="While at least one of its tools is on",
        help_text="{active_tools} is replaced by the names of the tools that are on. Notes on tools are appended.",
    )
    policy_when_off = fields.Text(
        rows=2,
        label="While none of its tools is on",
        help_text="Sent to every agent that has none of its tools. Leave empty to send nothing.",
    )
    examples = fields.Text(rows=3, label="For operators only: the model never receives them")
    brings = fields.NameList(
        rows=2,
        label="Labels",
        help_text="One per line, such as private. A call of any of its tools leaves them in its session, for rules.",
    )
    add_members = fields.ToolNames()
    member, note, options = fields.Column(), fields.Column(), fields.Column()
    trigger_name, trigger_any, trigger_every, trigger_none = (fields.Column() for _ in range(4))
    trigger_about, trigger_focus, trigger_choice = (fields.Column() for _ in range(3))

    # The results of the trial message for each trigger.
    tried: Sequence[Tried] = ()

    @classmethod
    def initial_of(cls, value: catalog.Toolkit) -> dict[str, Any]:
        """Return the fields of the form for a toolkit; notes on tools that are not members stay unchanged."""
        members = [
            (
                member.tool,
                value.tool_notes.get(member.tool, ""),
                options_text(member),
            )
            for member in value.members
        ]
        triggers = [
            (
                trigger.name,
                "\n".join(trigger.any or ()),
                "\n\n".join("\n".join(group) for group in trigger.all or ()),
                "\n".join(trigger.none),
                "all" if trigger.focus is None else "some",
                " ".join(trigger.focus or ()),
                trigger.tool_choice,
            )
            for trigger in value.triggers
        ]
        named = {member.tool for member in value.members}
        return {
            **super().initial_of(value),
            **_columns(_MEMBER, members),
            **_columns([f"trigger_{name}" for name in _TRIGGER], triggers),
            "other_notes": {key: note for key, note in value.tool_notes.items() if key not in named},
        }

    def clean(self) -> None:
        """Set the rows from the fields and the row action; added tools and triggers come last."""
        members = self._rows(_MEMBER)
        if self.data.get("act") != "try":
            # During a trial, a name may still be incomplete.
            added = self.tools_to_add("members", self.cleaned_data["add_members"])
            known = {row["member"] for row in members}
            members += [{"member": tool, "note": "", "options": ""} for tool in added if tool not in known]
        triggers = self._rows(_TRIGGER, "trigger_")
        action = self.row_action
        if action is not None and action.rows == "members":
            members = list(action.apply(members))
        elif action is not None and action.verb == "add":
            triggers.append(
                dict.fromkeys(_TRIGGER, "") | {"name": f"trigger {len(triggers) + 1}", "about": "all"}
            )
        elif action is not None:
            triggers = list(action.apply(triggers))
        self.member_rows, self.trigger_rows = members, triggers

    def entry(self) -> dict[str, Any]:
        """Return every key of the form with its value; None means the default."""
        notes = {row["member"]: row["note"] for row in self.member_rows if row["note"]}
        members = [
            {"tool": row["member"], "options": options}
            if isinstance(options := _json(row["options"]), dict)
            else row["member"]
            for row in self.member_rows
        ]
        return {
            **super().entry(),
            "members": members or None,
            "tool_notes": {**self.initial.get("other_notes", {}), **notes} or None,
            "triggers": [_trigger(row) for row in self.trigger_rows] or None,
        }

    def check_rows(self) -> dict[str, str]:
        """Return the messages about options that are not JSON objects, and about too many rows."""
        problem = too_many(len(self.member_rows), len(self.trigger_rows))
        return ({"": problem} if problem else {}) | {
            f"members[{index}].options": 'Enter options as a JSON object, such as {"depth": 3}.'
            for index, row in enumerate(self.member_rows)
            if row["options"] and not isinstance(_json(row["options"]), dict)
        }

    def check_draft(self) -> dict[str, str]:
        """Return the messages about the toolkit as typed, by path."""
        address = belts.address("toolkit", {"key": self.entry_name})
        problems = proposals.problems("toolkit", self.entry_name, self.entry())
        return {**entry_forms.problems_by_path(address, problems), **self.check_rows()}

    def set_choices(self, stored: catalog.Catalog) -> None:
        """Set the rows of tools and triggers, and the tools to add."""
        self.members = list(self._member_views(stored))
        self.triggers = list(self._trigger_views())

    def _rows(self, names: Sequence[str], prefix: str = "") -> list[dict[str, str]]:
        """Return the rows of a list. The first field determines their number; missing other fields are empty."""
        first, *others = (self.cleaned_data[f"{prefix}{name}"] for name in names)
        rows = itertools.islice(itertools.zip_longest(first, *others, fillvalue=""), len(first))
        return [dict(zip(names, map(fields.normalize, row), strict=True)) for row in rows]

    def _member_views(self, stored: catalog.Catalog) -> Iterator[MemberRow]:
        for index, row in enumerate(self.member_rows):
            path, tool = f"members[{index}]", row["member"]
            paths = {path, f"{path}.tool", f"tool_notes.{tool}"}
            yield MemberRow(
                **row,
                about=words.about_tool(stored, tool),
                problem=" ".join(text for key, text in self.problems.items() if key in paths),
                options_problem=" ".join(
                    text for key, text in self.problems.items() if key.startswith(f"{path}.options")
                ),
            )

    def _trigger_views(self) -> Iterator[TriggerRow]:
        for index, row in enumerate(self.trigger_rows):
            path = f"triggers[{index}]"
            problems = dict.fromkeys(("name", "any", "every", "none", "focus"), "")
            for problem_path, message in self.problems.items():
                if problem_path == path or problem_path.startswith(f"{path}."):
                    key = problem_path.removeprefix(path).lstrip(".").partition("[")[0]
                    name = _TRIGGER_KEYS.get(key, key or "any")
                    problems[name] = f"{problems.get(name, '')} {message}".strip()
            trial = self.tried[index] if index < len(self.tried) else None
            yield TriggerRow(**row, trial=trial, problems=problems)


def too_many(members: int, triggers: int) -> str:
    """Return a message if the editor does not accept this many rows; empty if it does."""
    maximum: int | None = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    sent = len(_MEMBER) * members + len(_TRIGGER) * triggers + _OTHER_FIELDS
    if max(members, triggers) <= MAX_ROWS and (maximum is None or sent <= maximum):
        return ""
    return (
        f"{members} tools and {triggers} triggers exceed the limit of this editor (at most {MAX_ROWS} of each)."
        " Edit the toolkit in a belt instead: export it, change it, and import it."
    )


def _columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _trigger(row: Mapping[str, str]) -> dict[str, Any]:
    """Return a trigger in the form of an entry."""
    groups = [_lines(group) for group in "\n".join(map(str.strip, row["every"].split("\n"))).split("\n\n")]
    lists = {"any": _lines(row["any"]), "all": list(filter(None, groups)), "none": _lines(row["none"])}
    entry: dict[str, Any] = {"name": row["name"], **{key: value for key, value in lists.items() if value}}
    if row["about"] == "some":
        entry["focus"] = fields.split_names(row["focus"])
    if row["choice"] == "required":
        entry["tool_choice"] = "required"
    return entry


def _lines(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line.strip() for line in text.split("\n") if line.strip()]
