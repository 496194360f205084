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
    may_edit: bool,
) -> pieces.View:
    """Fill the page; ``filters`` holds the message to try and the agent whose tools it is tried with.

    ``may_flip`` says for which agents the reader may flip its switch; ``may_edit``: the reader may change the toolkit.
    Raise errors.NotFound.
    """
    toolkit = index.catalog.toolkits.get(key)
    if toolkit is None:
        raise errors.NotFound("toolkit", key, index.catalog.toolkits)
    held = view_model.held(index, toolkit)
    line = view_model.line(held)
    closed = access_index.closed(index.catalog)
    order = list(index.catalog.toolkits)
    place = order.index(key)
    holders = paging.named(index.holders, filters["agents"])
    if len(holders) > paging.AT_ONCE:
        # Agents that it concerns come first, because there are many pages.
        concerned = {*held.users, *held.switches}
        holders.sort(key=lambda holder: holder.agent.key not in concerned)
    part = paging.part(holders, filters["offset"])
    cells = tuple(
        view_model.cell(holder, toolkit, may_change=may_flip(holder.agent.key)) for holder in part.items
    )
    return pieces.View(
        key=key,
        title=line.title,
        description=toolkit.description,
        owner=toolkit.plugin,
        crowded=forms.too_many(len(toolkit.members), len(toolkit.triggers)) if may_edit else "",
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
        preview=preview(index, toolkit, filters),
        examples=toolkit.examples.strip(),
        stop=stop(toolkit),
        seen=json.dumps(belts.entry("toolkit", toolkit), ensure_ascii=False),
        place=f"{words.number(place + 1)} of {words.number(len(order))}",
        up=order[place - 1] if may_edit and place else "",
        down=order[place + 1] if may_edit and place + 1 < len(order) else "",
        may_change=any(may_flip(holder.agent.key) for holder in index.holders),
        may_stop=may_edit,
    )


def stop(toolkit: catalog.Toolkit) -> pieces.View:
    """Fill the emergency stop."""
    return pieces.View(
        key=toolkit.key,
        url=reverse("web:stop_toolkit", args=[toolkit.key]),
        on=toolkit.blocked,
        about="Blocks all its tools for all agents immediately, whatever their settings.",
    )


def preview(
    index: access_index.AccessIndex, toolkit: catalog.Toolkit, filters: Mapping[str, Any]
) -> pieces.View:
    """Return what the model receives: that of an agent that ``filters`` names, or of one that has all its tools."""
    stored = index.catalog
    holder = next((holder for holder in index.holders if holder.agent.key == filters["whose"]), None)
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


def _outcome(message: str, active: tuple[str, ...], trial: directives.Trial) -> pieces.View | None:
    if not message.strip():
        return None
    if not active:
        return pieces.View(words="No directive: none of its tools is on, so its triggers do not apply.")
    if trial.focus is None:
        return pieces.View(words="No directive: no trigger matches this message.")
    return _focused(trial.focus)


def _focused(focus: toolkit_hooks.Focus) -> pieces.View:
    if not focus.tools:
        return pieces.View(words="No directive: none of the tools to focus on is on.", because=focus.because)
    return pieces.View(
        words=f"The first step focuses on {words.tools(len(focus.tools))}"
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


def _conditions(trigger: catalog.Trigger) -> Iterator[pieces.View]:
    if trigger.any is not None:
        yield pieces.View(label="any of", patterns=trigger.any)
    for number, group in enumerate(trigger.all or ()):
        first = "one of" if number == 0 and trigger.any is None else "and one of"
        yield pieces.View(label=first, patterns=group)
    if trigger.none:
        yield pieces.View(label="but none of", patterns=trigger.none)


def whose(agents: Iterable[str], chosen: str) -> Iterator[pieces.Choice]:
    """Return the choices of whose tools the preview uses: all, or those of an agent."""
    keys = list(agents)
    yield pieces.Choice(value="", label=f"With {_EVERYTHING}", chosen=chosen not in keys)
    for key in keys:
        yield pieces.Choice(value=key, label=key, chosen=key == chosen)


def _member(
    stored: catalog.Catalog, toolkit: catalog.Toolkit, member: catalog.Member, closed: Mapping[str, Any]
) -> pieces.View:
    """Return one tool of the toolkit; ``state`` is empty unless no agent can have it."""
    tool, decision = stored.tools.get(member.tool), closed.get(member.tool)
    if tool is None:
        return pieces.View(
            tool=member.tool,
            risk=tool_sections.Risk(word="destructive", stated=False),
            exists=False,
            state="unavailable",
            about="this tool does not exist",
        )
    return pieces.View(
        tool=member.tool,
        exists=True,
        description=words.cut(tool.description or tool.title, tool_sections.MAX_DESCRIPTION_LENGTH),
        risk=tool_sections.risk(tool),
        tokens=words.number(tool.tokens),
        state=decision.state if decision else "",
        about=reasons.explain(decision) if decision else "",
        note=toolkit.tool_notes.get(member.tool, "").strip(),
        options=json.dumps(dict(member.options), ensure_ascii=False) if member.options else "",
    )
