"""What does the editor of a toolkit send? Its texts, its members and its triggers, row by row."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import QueryDict

from toolbelt.core import catalog
from toolbelt.web import drafts

# More rows than anybody would scroll through; a belt takes any number.
MOST_ROWS = 300
# How many fields of a form a row takes, and all that is not in a row.
_OF_MEMBER, _OF_TRIGGER, _BESIDE = 3, 7, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One tool of the toolkit, with the note on it and its options as JSON; both empty: none."""

    tool: str
    note: str = ""
    options: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One trigger: patterns a line each, those of a group of ``every`` together, groups parted by an empty line.

    ``whole``: it is about all of the toolkit's tools, else about those of ``focus``.
    """

    name: str = ""
    any: str = ""
    every: str = ""
    none: str = ""
    whole: bool = True
    focus: str = ""
    required: bool = False

    def entry(self) -> dict[str, Any]:
        """Give it as an entry holds it."""
        groups = [drafts.lines(group) for group in _groups(self.every)]
        said = {"any": drafts.lines(self.any), "all": groups, "none": drafts.lines(self.none)}
        written: dict[str, Any] = {"name": self.name, **{key: value for key, value in said.items() if value}}
        if not self.whole:
            written["focus"] = drafts.names(self.focus)
        if self.required:
            written["tool_choice"] = "required"
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One toolkit as it was typed. ``other_notes`` are on tools that are no members, which the editor leaves alone."""

    name: str = ""
    title: str = ""
    description: str = ""
    policy: str = ""
    policy_when_off: str = ""
    examples: str = ""
    members: tuple[Member, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    other_notes: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        """Give every key that the editor shows; None stands for one that has its default."""
        notes = {row.tool: row.note for row in self.members if row.note}
        return {
            "title": self.title or None,
            "description": self.description or None,
            "members": [_use(row) for row in self.members] or None,
            "policy": self.policy or None,
            "policy_when_off": self.policy_when_off or None,
            "tool_notes": {**self.other_notes, **notes} or None,
            "triggers": [trigger.entry() for trigger in self.triggers] or None,
            "examples": self.examples or None,
        }

    def problems(self) -> dict[str, str]:
        """Say what cannot even be written as an entry, by its place: options that are no JSON object, or more rows than
        the editor takes.
        """
        crowded = too_many(len(self.members), len(self.triggers))
        return {
            **({"": crowded} if crowded else {}),
            **{
                f"members[{place}].options": 'Options are a JSON object, such as {"depth": 3}.'
                for place, row in enumerate(self.members)
                if row.options and not isinstance(_json(row.options), dict)
            },
        }


def too_many(members: int, triggers: int) -> str:
    """Say why the editor does not take so many rows, and what does; empty: it takes them."""
    most: int | None = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    sent = _OF_MEMBER * members + _OF_TRIGGER * triggers + _BESIDE
    if max(members, triggers) <= MOST_ROWS and (most is None or sent <= most):
        return ""
    return (
        f"{members} tools and {triggers} triggers are more than this editor takes (at most {MOST_ROWS} of each)."
        " Write them in a belt instead: export it, change the toolkit there, and import it."
    )


def of(toolkit: catalog.Toolkit) -> Draft:
    """Begin with a toolkit that there is."""
    there = {member.tool for member in toolkit.members}
    return Draft(
        name=toolkit.key,
        title=toolkit.title.strip(),
        description=drafts.text(toolkit.description),
        policy=drafts.text(toolkit.policy),
        policy_when_off=drafts.text(toolkit.policy_when_off),
        examples=drafts.text(toolkit.examples),
        members=tuple(
            Member(
                tool=member.tool,
                note=drafts.text(toolkit.tool_notes.get(member.tool, "")),
                options="" if member.options is None else json.dumps(member.options, ensure_ascii=False),
            )
            for member in toolkit.members
        ),
        triggers=tuple(map(_trigger, toolkit.triggers)),
        other_notes={key: note for key, note in toolkit.tool_notes.items() if key not in there},
    )


def read(posted: QueryDict, name: str, shown: Draft) -> Draft:
    """Read a form, with what its buttons do: tools and triggers that are added come last."""
    members = [
        Member(tool=tool, note=drafts.text(note), options=options.strip())
        for tool, note, options in _rows(posted, "member", "note", "options")
    ]
    if posted.get("act") != "try":
        # Whoever only tries the form may still be in the middle of a name.
        members += [Member(tool=tool) for tool in drafts.names(posted.get("add_members", ""))]
    triggers = [
        Trigger(
            name=name.strip(),
            any=drafts.text(any_),
            every=drafts.text(every),
            none=drafts.text(none),
            whole=about != "some",
            focus=" ".join(drafts.names(focus)),
            required=choice == "required",
        )
        for name, any_, every, none, about, focus, choice in _rows(
            posted,
            "trigger_name",
            "trigger_any",
            "trigger_every",
            "trigger_none",
            "trigger_about",
            "trigger_focus",
            "trigger_choice",
        )
    ]
    draft = Draft(
        name=name or posted.get("key", "").strip(),
        title=posted.get("title", "").strip(),
        description=drafts.text(posted.get("description", "")),
        policy=drafts.text(posted.get("policy", "")),
        policy_when_off=drafts.text(posted.get("policy_when_off", "")),
        examples=drafts.text(posted.get("examples", "")),
        members=tuple(members),
        triggers=tuple(triggers),
        other_notes=shown.other_notes,
    )
    act = drafts.act(posted)
    if act is None:
        return draft
    if act.rows == "members":
        return dataclasses.replace(draft, members=drafts.acted(draft.members, act))
    if act.verb == "add":
        number = len(draft.triggers) + 1
        return dataclasses.replace(draft, triggers=(*draft.triggers, Trigger(name=f"trigger {number}")))
    return dataclasses.replace(draft, triggers=drafts.acted(draft.triggers, act))


def _trigger(trigger: catalog.Trigger) -> Trigger:
    return Trigger(
        name=trigger.name.strip(),
        any="\n".join(trigger.any or ()),
        every="\n\n".join("\n".join(group) for group in trigger.all or ()),
        none="\n".join(trigger.none),
        whole=trigger.focus is None,
        focus=" ".join(trigger.focus or ()),
        required=trigger.tool_choice == "required",
    )


def _rows(posted: QueryDict, *fields: str) -> Iterator[tuple[str, ...]]:
    """Give the rows of a list: the first field names each; what a row lacks of the others is empty."""
    columns = [posted.getlist(field) for field in fields]
    for place in range(len(columns[0])):
        yield tuple(column[place] if place < len(column) else "" for column in columns)


def _use(row: Member) -> Any:
    options = _json(row.options) if row.options else None
    return row.tool if not isinstance(options, dict) else {"tool": row.tool, "options": options}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _groups(text: str) -> Iterator[str]:
    group: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.strip():
            group.append(line)
        elif group:
            yield "\n".join(group)
            group = []
