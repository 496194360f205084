"""How is the editor of a toolkit filled, from what is stored or from what somebody typed?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolbelt.control import holdings
from toolbelt.core import catalog
from toolbelt.web import drafts, toolkit_drafts, words
from toolbelt.web.pages import toolkit as one
from toolbelt.web.presenters import toolkit_editor as presenters

_TEXTS = ("key", "title", "description", "policy", "policy_when_off", "examples")
# The fields of a trigger, by what they are in an entry.
_TRIGGER = {
    "name": "name",
    "any": "any",
    "every": "all",
    "none": "none",
    "focus": "focus",
    "choice": "tool_choice",
}


def form(
    found: holdings.Holdings,
    agents: Iterable[str],
    draft: toolkit_drafts.Draft,
    toolkit: catalog.Toolkit,
    said: Mapping[str, Any],
    *,
    new: bool,
    action: str,
    back: str,
    seen: str,
    reason: str,
    problems: Mapping[str, str],
    refused: bool,
) -> presenters.Form:
    """Fill it; ``found`` and ``toolkit`` are as they would be if the draft were stored, ``said`` is the message to try
    and which of the ``agents``' eyes to look with. ``problems`` are by their places in the entry; ``refused``: it was
    to be saved.
    """
    told = one.told(found, toolkit, said)
    return presenters.Form(
        key=draft.name,
        new=new,
        action=action,
        back=back,
        title=draft.title,
        description=draft.description,
        policy=draft.policy,
        policy_when_off=draft.policy_when_off,
        examples=draft.examples,
        members=tuple(_members(found.catalog, draft, problems)),
        triggers=tuple(_triggers(draft, told.triggers, problems)),
        others=len(draft.other_notes),
        known=tuple(key for key in found.catalog.tools if key not in {row.tool for row in draft.members}),
        message=said["message"],
        whose=tuple(one.whose(agents, said["whose"])),
        told=told,
        reason=reason,
        seen=seen,
        problems=_by_field(problems, refused),
    )


def _by_field(problems: Mapping[str, str], refused: bool) -> dict[str, str]:
    said = {name: text for name in _TEXTS if (text := drafts.at(problems, name))}
    for name in ("members", "triggers"):
        if name in problems:
            said[name] = problems[name]
    rest = [
        text
        for place, text in problems.items()
        if place.partition("[")[0].partition(".")[0] not in (*_TEXTS, "members", "triggers")
    ]
    if problems and (refused or rest):
        said[""] = " ".join(rest) or "Look at what is marked."
    return said


def _members(
    stored: catalog.Catalog, draft: toolkit_drafts.Draft, problems: Mapping[str, str]
) -> Iterator[presenters.MemberRow]:
    for place, row in enumerate(draft.members):
        tool = stored.tools.get(row.tool)
        options = problems.get(f"members[{place}].options", "")
        problem = " ".join(
            text
            for at, text in problems.items()
            if at in (f"members[{place}]", f"members[{place}].tool", f"tool_notes.{row.tool}")
        )
        yield presenters.MemberRow(
            place=place,
            key=row.tool,
            about=words.cut(tool.description or tool.title, 100) if tool else "",
            note=row.note,
            options=row.options,
            open=bool(row.note or row.options or options or problem),
            problem=problem,
            options_problem=options,
        )


def _triggers(
    draft: toolkit_drafts.Draft, tried: tuple[Any, ...], problems: Mapping[str, str]
) -> Iterator[presenters.TriggerRow]:
    for place, row in enumerate(draft.triggers):
        trial = tried[place] if place < len(tried) else None
        here = f"triggers[{place}]"
        wrong = {
            name: text for name, key in _TRIGGER.items() if (text := drafts.at(problems, f"{here}.{key}"))
        }
        if here in problems:
            wrong["any"] = f"{problems[here]} {wrong.get('any', '')}".strip()
        yield presenters.TriggerRow(
            place=place,
            number=place + 1,
            number_text=str(place + 1),
            name=row.name,
            any=row.any,
            every=row.every,
            none=row.none,
            whole=row.whole,
            focus=row.focus,
            required=row.required,
            fires=bool(trial and trial.fires),
            decides=bool(trial and trial.decides),
            problems=wrong,
        )
