"""How is the page of one toolkit filled: its tools, what a model is told of it, and who has it?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.urls import reverse

from toolbelt.control import holdings
from toolbelt.core import belts, catalog, code, directives, errors, policy, reasons, risks
from toolbelt.web import toolkit_drafts, words
from toolbelt.web.pages import model, paging, sections
from toolbelt.web.pages import toolkits as pages
from toolbelt.web.presenters import access, answers, pieces, toolkits

_EVERYTHING = "all of its tools"


def page(
    found: holdings.Holdings,
    key: str,
    said: Mapping[str, Any],
    *,
    path: str,
    here: str,
    admin_url: str,
    notice: answers.Notice | None,
    may_flip: Callable[[str], bool],
    may_stop: bool,
    may_remove: bool = False,
) -> toolkits.ToolkitPage:
    """Fill the page; ``said`` is the message to try and whose eyes to look with, ``may_flip`` says for which agents the
    reader may flip its switch. Raises errors.NotFound.
    """
    toolkit = found.catalog.toolkits.get(key)
    if toolkit is None:
        raise errors.NotFound("toolkit", key, found.catalog.toolkits)
    held = pages.held(found, toolkit)
    users = frozenset(held.users)
    line = pages.line(held)
    closed = holdings.closed(found.catalog)
    order = list(found.catalog.toolkits)
    place = order.index(key)
    holders = paging.named(found.holders, said["agents"])
    if len(holders) > paging.AT_ONCE:
        # Whom it concerns is not to be looked for on twenty pages.
        holders.sort(key=lambda one: one.agent.key not in held.switches and one.agent.key not in users)
    part = paging.part(holders, said["offset"])
    cells = tuple(pages.cell(holder, toolkit, may_change=may_flip(holder.agent.key)) for holder in part.items)
    return toolkits.ToolkitPage(
        key=key,
        title=line.title,
        description=toolkit.description,
        owner=toolkit.plugin,
        crowded=toolkit_drafts.too_many(len(toolkit.members), len(toolkit.triggers)) if may_stop else "",
        marks=line.marks,
        tools=words.tools(len(held.members)),
        tokens=line.tokens,
        users=line.users,
        switched=line.switched,
        members=tuple(_member(found.catalog, toolkit, member, closed) for member in toolkit.members),
        cells=cells,
        find=paging.find_agents(found.holders, said, path, ("offset",)),
        pages=part.pages(said, path, anchor="#holders"),
        message=said["message"],
        whose=tuple(whose((holder.agent.key for holder in found.holders), said["whose"])),
        told=told(found, toolkit, said),
        examples=toolkit.examples.strip(),
        stop=stop(toolkit),
        seen=json.dumps(belts.entry("toolkit", toolkit), ensure_ascii=False) if may_remove else "",
        place=f"{words.number(place + 1)} of {words.number(len(order))}",
        up=order[place - 1] if may_stop and place else "",
        down=order[place + 1] if may_stop and place + 1 < len(order) else "",
        admin_url=admin_url,
        notice=notice,
        may_change=any(may_flip(holder.agent.key) for holder in found.holders),
        may_stop=may_stop,
        here=here,
    )


def stop(toolkit: catalog.Toolkit) -> pieces.Stop:
    """Fill the emergency stop."""
    return pieces.Stop(
        key=toolkit.key,
        url=reverse("web:stop_toolkit", args=[toolkit.key]),
        on=toolkit.blocked,
        about="Denies all of its tools to everyone at once, whatever any agent is set to.",
    )


def told(found: holdings.Holdings, toolkit: catalog.Toolkit, said: Mapping[str, Any]) -> toolkits.Told:
    """Say what a model is told: that of an agent that ``said`` names, or of one that has all of its tools."""
    stored = found.catalog
    holder = next((one for one in found.holders if one.agent.key == said["whose"]), None)
    there = holdings.members(stored, toolkit)
    if holder is not None:
        active = tuple(key for key in there if key in holder.active)
        reach = set(holder.active)
    else:
        active = there
        reach = {*there, *(key for one in toolkit.triggers for key in one.focus or ())} & stored.tools.keys()
    trial = directives.tried(stored, toolkit, reach, said["message"])
    in_python = stored.voice(toolkit) is not None
    return toolkits.Told(
        policy=policy.section(stored, toolkit.key, active).text if active else policy.off_text(toolkit),
        off=not active,
        active=f"{len(active)} of {words.tools(len(there))} active",
        written=toolkit.policy if policy.PLACEHOLDER in toolkit.policy and not in_python else "",
        off_text=policy.off_text(toolkit) if active else "",
        triggers=() if in_python else tuple(_triggers(toolkit, trial)),
        in_python=in_python,
        outcome=_outcome(said["message"], active, trial),
    )


def _outcome(message: str, active: tuple[str, ...], trial: directives.Trial) -> toolkits.Outcome | None:
    if not message.strip():
        return None
    if not active:
        return toolkits.Outcome(told="No directive: none of its tools is active, so it is not asked.")
    if trial.focus is None:
        return toolkits.Outcome(told="No directive: nothing matches this message.")
    return _focused(trial.focus)


def _focused(focus: code.Focus) -> toolkits.Outcome:
    if not focus.tools:
        return toolkits.Outcome(
            told="No directive: none of the tools to focus on is active.", because=focus.because
        )
    return toolkits.Outcome(
        told=f"The first step is about {words.tools(len(focus.tools))}"
        + (", and must call one." if focus.tool_choice == "required" else "."),
        tools=focus.tools,
        tool_choice=focus.tool_choice,
        because=focus.because,
    )


def _triggers(toolkit: catalog.Toolkit, trial: directives.Trial) -> Iterator[toolkits.Trigger]:
    for place, trigger in enumerate(toolkit.triggers):
        yield toolkits.Trigger(
            number=place + 1,
            name=trigger.name,
            conditions=tuple(_conditions(trigger)),
            focus=trigger.focus or (),
            whole=trigger.focus is None,
            required=trigger.tool_choice == "required",
            fires=trial.fired[place],
            decides=trial.decides == place,
        )


def _conditions(trigger: catalog.Trigger) -> Iterator[toolkits.Condition]:
    if trigger.any is not None:
        yield toolkits.Condition(label="any of", patterns=trigger.any)
    for number, group in enumerate(trigger.all or ()):
        first = "one of" if number == 0 and trigger.any is None else "and one of"
        yield toolkits.Condition(label=first, patterns=group)
    if trigger.none:
        yield toolkits.Condition(label="but none of", patterns=trigger.none)


def whose(agents: Iterable[str], chosen: str) -> Iterator[pieces.Choice]:
    """Offer to look with the eyes of an agent."""
    keys = list(agents)
    yield pieces.Choice(value="", label=f"With {_EVERYTHING}", chosen=chosen not in keys)
    for key in keys:
        yield pieces.Choice(value=key, label=f"As {key} has it", chosen=key == chosen)


def _member(
    stored: catalog.Catalog, toolkit: catalog.Toolkit, member: catalog.Member, closed: Mapping[str, Any]
) -> toolkits.Member:
    prefix, name = model.split(member.tool)
    tool = stored.tools.get(member.tool)
    if tool is None:
        return toolkits.Member(
            key="",
            prefix=prefix,
            name=name,
            description="",
            risk=access.Risk(word="destructive", stated=False),
            tokens="",
            state="unavailable",
            about="there is no such tool",
            note="",
            options="",
        )
    decision = closed.get(member.tool)
    return toolkits.Member(
        key=member.tool,
        prefix=prefix,
        name=name,
        description=words.cut(tool.description or tool.title, sections.LONGEST_DESCRIPTION),
        risk=access.Risk(word=risks.of(tool), stated=sections.states_risk(tool)),
        tokens=words.number(tool.tokens),
        state=decision.state if decision else "",
        about=reasons.in_words(decision) if decision else "",
        note=toolkit.tool_notes.get(member.tool, "").strip(),
        options=json.dumps(dict(member.options), ensure_ascii=False) if member.options else "",
    )
