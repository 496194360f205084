"""The page of one toolkit: its tools, what a model receives of it, and who has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.urls import reverse

from toolbelt.control.access import access_index
from toolbelt.core import belts, catalog, directives, errors, policy, reasons, toolkit_hooks
from toolbelt.web.kit import model, paging, pieces, tool_sections, words
from toolbelt.web.toolkits import forms, view_model

_EVERYTHING = "all its tools"


def page(
    index: access_index.AccessIndex,
    key: str,
    filters: Mapping[str, Any],
    *,
    path: str,
    may_flip: Callable[[str], bool],
    may_stop: bool,
    may_remove: bool = False,
    **frame: Any,
) -> pieces.View:
    """Fill the page; ``filters`` holds the message to try and the agent whose tools it is tried with.

    ``may_flip`` says for which agents the reader may flip its switch. Raise errors.NotFound.
    """
    toolkit = index.catalog.toolkits.get(key)
    if toolkit is None:
        raise errors.NotFound("toolkit", key, index.catalog.toolkits)
    held = view_model.held(index, toolkit)
    users = frozenset(held.users)
    line = view_model.line(held)
    closed = access_index.closed(index.catalog)
    order = list(index.catalog.toolkits)
    place = order.index(key)
    holders = paging.named(index.holders, filters["agents"])
    if len(holders) > paging.AT_ONCE:
        # Whom it concerns is not to be looked for on twenty pages.
        holders.sort(key=lambda one: one.agent.key not in held.switches and one.agent.key not in users)
    part = paging.part(holders, filters["offset"])
    cells = tuple(
        view_model.cell(holder, toolkit, may_change=may_flip(holder.agent.key)) for holder in part.items
    )
    return pieces.View(
        key=key,
        title=line.title,
        description=toolkit.description,
        owner=toolkit.plugin,
        crowded=forms.too_many(len(toolkit.members), len(toolkit.triggers)) if may_stop else "",
        marks=line.marks,
        tools=words.tools(len(held.members)),
        tokens=line.tokens,
        users=line.users,
        switched=line.switched,
        members=tuple(_member(index.catalog, toolkit, member, closed) for member in toolkit.members),
        cells=cells,
        find=paging.find_agents(index.holders, filters, path, ("offset",)),
        pages=part.pages(filters, path, anchor="#holders"),
        message=filters["message"],
        whose=tuple(whose((holder.agent.key for holder in index.holders), filters["whose"])),
        told=told(index, toolkit, filters),
        examples=toolkit.examples.strip(),
        stop=stop(toolkit),
        seen=json.dumps(belts.entry("toolkit", toolkit), ensure_ascii=False) if may_remove else "",
        place=f"{words.number(place + 1)} of {words.number(len(order))}",
        up=order[place - 1] if may_stop and place else "",
        down=order[place + 1] if may_stop and place + 1 < len(order) else "",
        may_change=any(may_flip(holder.agent.key) for holder in index.holders),
        may_stop=may_stop,
        **frame,
    )


def stop(toolkit: catalog.Toolkit) -> pieces.Stop:
    """Fill the emergency stop."""
    return pieces.Stop(
        key=toolkit.key,
        url=reverse("web:stop_toolkit", args=[toolkit.key]),
        on=toolkit.blocked,
        about="Blocks all its tools for all agents immediately, whatever their settings.",
    )


def told(
    index: access_index.AccessIndex, toolkit: catalog.Toolkit, filters: Mapping[str, Any]
) -> pieces.View:
    """Return what a model is told: that of an agent that ``filters`` names, or of one that has all its tools."""
    stored = index.catalog
    holder = next((one for one in index.holders if one.agent.key == filters["whose"]), None)
    there = tuple(key for key in access_index.members(stored, toolkit) if key not in stored.non_tools)
    if holder is not None:
        active = tuple(key for key in there if key in holder.active)
        reach = set(holder.active)
    else:
        active = there
        reach = {
            *there,
            *(key for trigger in toolkit.triggers for key in trigger.focus or ()),
        } & stored.tools.keys()
    trial = directives.try_message(stored, toolkit, reach, filters["message"])
    in_python = stored.hooks(toolkit) is not None
    section = policy.section_of(stored, toolkit, active)
    return pieces.View(
        policy=section.text,
        tokens=model.section_tokens(stored, section),
        off=not active,
        active=f"{len(active)} of {words.tools(len(there))} on",
        written=toolkit.policy if policy.PLACEHOLDER in toolkit.policy and not in_python else "",
        off_text=policy.off_text(toolkit) if active else "",
        triggers=() if in_python else tuple(_triggers(toolkit, trial)),
        in_python=in_python,
        outcome=_outcome(filters["message"], active, trial),
    )


def _outcome(message: str, active: tuple[str, ...], trial: directives.Trial) -> view_model.Outcome | None:
    if not message.strip():
        return None
    if not active:
        return view_model.Outcome(told="No directive: none of its tools is on, so its triggers do not apply.")
    if trial.focus is None:
        return view_model.Outcome(told="No directive: no trigger matches this message.")
    return _focused(trial.focus)


def _focused(focus: toolkit_hooks.Focus) -> view_model.Outcome:
    if not focus.tools:
        return view_model.Outcome(
            told="No directive: none of the tools to focus on is on.", because=focus.because
        )
    return view_model.Outcome(
        told=f"The first step focuses on {words.tools(len(focus.tools))}"
        + (" and must call one." if focus.tool_choice == "required" else "."),
        tools=focus.tools,
        tool_choice=focus.tool_choice,
        because=focus.because,
    )


def _triggers(toolkit: catalog.Toolkit, trial: directives.Trial) -> Iterator[pieces.View]:
    for place, trigger in enumerate(toolkit.triggers):
        yield pieces.View(
            number=place + 1,
            name=trigger.name,
            conditions=tuple(_conditions(trigger)),
            focus=trigger.focus or (),
            whole=trigger.focus is None,
            required=trigger.tool_choice == "required",
            fires=trial.fired[place],
            decides=trial.decides == place,
        )


def _conditions(trigger: catalog.Trigger) -> Iterator[view_model.Condition]:
    if trigger.any is not None:
        yield view_model.Condition(label="any of", patterns=trigger.any)
    for number, group in enumerate(trigger.all or ()):
        first = "one of" if number == 0 and trigger.any is None else "and one of"
        yield view_model.Condition(label=first, patterns=group)
    if trigger.none:
        yield view_model.Condition(label="but none of", patterns=trigger.none)


def whose(agents: Iterable[str], chosen: str) -> Iterator[pieces.Choice]:
    """Offer to look with the eyes of an agent."""
    keys = list(agents)
    yield pieces.Choice(value="", label=f"With {_EVERYTHING}", chosen=chosen not in keys)
    for key in keys:
        yield pieces.Choice(value=key, label=f"{key}", chosen=key == chosen)


def _member(
    stored: catalog.Catalog, toolkit: catalog.Toolkit, member: catalog.Member, closed: Mapping[str, Any]
) -> view_model.Member:
    prefix, name = model.split(member.tool)
    tool = stored.tools.get(member.tool)
    if tool is None:
        return view_model.Member(
            key="",
            prefix=prefix,
            name=name,
            description="",
            risk=tool_sections.Risk(word="destructive", stated=False),
            tokens="",
            state="unavailable",
            about="this tool does not exist",
            note="",
            options="",
        )
    decision = closed.get(member.tool)
    return view_model.Member(
        key=member.tool,
        prefix=prefix,
        name=name,
        description=words.cut(tool.description or tool.title, tool_sections.MAX_DESCRIPTION_LENGTH),
        risk=tool_sections.risk(tool),
        tokens=words.number(tool.tokens),
        state=decision.state if decision else "",
        about=reasons.explain(decision) if decision else "",
        note=toolkit.tool_notes.get(member.tool, "").strip(),
        options=json.dumps(dict(member.options), ensure_ascii=False) if member.options else "",
    )
