"""How is a tool shown that waits for a look, so that whoever approves it knows what they approve?"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from toolbelt.control import providers, reviews
from toolbelt.core import risks
from toolbelt.web import words
from toolbelt.web.pages import model, sections, texts
from toolbelt.web.presenters import access, plugins

# On one page; the others follow when these are decided.
MOST_AT_ONCE = 40
LONGEST_FLAG = 200
_LABELS = {
    "title": "Title",
    "description": "Description",
    "input_schema": "Arguments",
    "output_schema": "Result",
    "annotations": "Hints",
}
_KINDS: Mapping[reviews.Kind, tuple[str, str, str]] = {
    "new": ("new", "accent", "Off for everyone until somebody approves it."),
    "changed": ("changed", "warning", "Unavailable until somebody approves what it says now."),
    "renamed": ("renamed", "warning", "Says what {previous} said, which is gone: the same tool under a new name."),
    "gone": ("gone", "quiet", "Not offered any more. Its switches and its history are kept."),
}  # fmt: skip


def review(
    found: providers.Detail,
    *,
    may_carry: bool,
    ticked: Collection[str] = (),
    moved: str = "",
) -> plugins.Review:
    """Fill what there is to look at; ``moved`` is a tool that became another version while somebody looked."""
    shown = [one for one in found.changes if one.kind != "gone"]
    waiting = found.provider.waiting
    return plugins.Review(
        changes=tuple(change(one, ticked=one.key in ticked, moved=one.key == moved) for one in shown),
        gone=tuple(change(one) for one in found.changes if one.kind == "gone"),
        all_gone=found.gone,
        later=waiting - len(shown),
        is_one=waiting == 1,
        renamed=any(one.previous for one in shown),
        may_carry=may_carry,
        flagged=sum(bool(one.flags) for one in shown),
    )


def change(one: reviews.Change, *, ticked: bool = False, moved: bool = False) -> plugins.Change:
    """Fill one tool to look at."""
    prefix, name = model.split(one.key)
    word, tone, about = _KINDS[one.kind]
    tool, is_compared = one.tool, one.kind in ("changed", "renamed")
    delta = one.tokens_after - one.tokens_before
    return plugins.Change(
        value=f"{one.key}={one.shown}",
        key=one.key,
        prefix=prefix,
        name=name,
        kind=one.kind,
        word=word,
        tone=tone,
        about=about.format(previous=one.previous),
        at_server=texts.visible(tool.upstream_name),
        risk=access.Risk(word=risks.of(tool), stated=sections.states_risk(tool)),
        tokens=words.number(one.tokens_after if one.kind != "gone" else one.tokens_before),
        delta=words.signed(delta) if is_compared and delta else "",
        users=_users(one),
        flags=tuple(texts.pieces(words.cut(flag, LONGEST_FLAG)) for flag in one.flags),
        description=texts.text(tool.description) if tool.description and not one.differences else None,
        schema=texts.text(_document(tool.input_schema)) if one.kind == "new" else None,
        arguments=texts.visible(", ".join(_arguments(_read(tool.input_schema)))),
        differences=tuple(
            plugins.FieldDifference(
                label=_LABELS.get(found.field, found.field),
                told=tuple(map(texts.visible, _told(found))),
                text=texts.difference(found.lines),
            )
            for found in one.differences
        ),
        ticked=ticked,
        moved=moved,
    )


def _users(one: reviews.Change) -> str:
    verb: Literal["had", "use"] = "had" if one.kind in ("renamed", "gone") else "use"
    if not one.users:
        return ""
    named = words.listing([user.removeprefix("the ") for user in one.users])
    if verb == "had":
        return f"named by {named} under its old name" if one.kind == "renamed" else f"named by {named}"
    return f"named by {named}"


def _told(found: reviews.Difference) -> Iterator[str]:
    """Say in words what became of arguments or hints, where that can be said."""
    before, after = _read(found.old), _read(found.new)
    if found.field == "annotations":
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield f"{name}: {_said(before.get(name))} → {_said(after.get(name))}"
    if found.field != "input_schema":
        return
    had, has = _arguments(before), _arguments(after)
    needed, needs = _required(before), _required(after)
    for name in has:
        if name not in had:
            yield f"takes {name}{', which must be given' if name in needs else ''}"
        elif name in needs and name not in needed:
            yield f"{name} must be given now"
        elif name in needed and name not in needs:
            yield f"{name} may be left out now"
    yield from (f"takes {name} no longer" for name in had if name not in has)


def _arguments(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("properties")
    return [str(name) for name in found] if isinstance(found, Mapping) else []


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    return [str(name) for name in found] if isinstance(found, list) else []


def _said(value: Any) -> str:
    return "not said" if value is None else words.cut(json.dumps(value, ensure_ascii=False), 80)


def _read(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _document(text: str) -> str:
    return json.dumps(_read(text), indent=2, sort_keys=True, ensure_ascii=False)
