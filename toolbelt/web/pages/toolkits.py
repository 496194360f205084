"""How is the list of toolkits filled, and an agent's switch of one of them?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.http import urlencode

from toolbelt.control import holdings
from toolbelt.core import catalog, reasons, resolution
from toolbelt.web import words
from toolbelt.web.pages import paging
from toolbelt.web.presenters import access, answers, pieces, toolkits

_SORTS: Mapping[str, Callable[[Held], Any]] = {
    "toolkit": lambda one: (one.toolkit.title or one.toolkit.key).casefold(),
    "tools": lambda one: len(one.members),
    "tokens": lambda one: one.tokens,
    "users": lambda one: len(one.users),
}
_COLUMNS = (("toolkit", "Toolkit"), ("tools", "Tools"), ("tokens", "Tokens"), ("users", "Agents"))
_SHOWS = {"": "All", "used": "In use", "unused": "Not in use", "stopped": "Stopped", "code": "In code"}
# The first of them that holds for a member is what the agent has of the toolkit.
_STATES: tuple[access.State, ...] = ("active", "discoverable", "unavailable", "denied", "dormant")
_WORDS: Mapping[str, str] = {
    "active": "Active",
    "discoverable": "On request",
    "unavailable": "Unavailable",
    "denied": "Denied",
    "dormant": "Not granted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One toolkit with who has it: ``users`` have one of its tools, ``switches`` are those that are set, by agent."""

    toolkit: catalog.Toolkit
    members: tuple[str, ...]
    tokens: int
    users: tuple[str, ...]
    switches: Mapping[str, bool]
    agents: int


def page(
    found: holdings.Holdings, said: Mapping[str, Any], path: str, notice: answers.Notice | None
) -> toolkits.ToolkitsPage:
    """Fill the list, narrowed and sorted as the form says; ``path`` is the page's own."""
    every = [held(found, toolkit) for toolkit in found.catalog.toolkits.values()]
    shown = [one for one in every if _fits(one, said)]
    sort = said["sort"] if str(said["sort"]).lstrip("-") in _SORTS else ""
    if sort:
        shown.sort(key=_SORTS[sort.lstrip("-")], reverse=sort.startswith("-"))
    count = len(shown)
    part = paging.part(shown, said["offset"])
    return toolkits.ToolkitsPage(
        toolkits=tuple(map(line, part.items)),
        pages=part.pages(said, path),
        columns=tuple(_column(name, label, said, sort, path) for name, label in _COLUMNS),
        query=said["q"],
        shows=tuple(
            pieces.Choice(
                value=value,
                label=label,
                chosen=value == said["show"],
                count=sum(_fits(one, {"q": "", "show": value}) for one in every) if value else None,
            )
            for value, label in _SHOWS.items()
        ),
        sort=sort,
        narrowed=bool(said["q"] or said["show"]),
        in_all=len(every),
        matches=f"{words.number(count)} toolkit{'' if count == 1 else 's'} in the order of the policy"
        if not sort
        else f"{words.number(count)} toolkit{'' if count == 1 else 's'}",
        notice=notice,
    )


def held(found: holdings.Holdings, toolkit: catalog.Toolkit) -> Held:
    """Say who has a toolkit."""
    there = holdings.members(found.catalog, toolkit)
    return Held(
        toolkit=toolkit,
        members=there,
        tokens=sum(found.catalog.tools[key].tokens for key in there),
        users=tuple(found.users.get(toolkit.key, ())),
        switches=found.switches.get(toolkit.key, {}),
        agents=len(found.holders),
    )


def line(one: Held) -> toolkits.ToolkitLine:
    """Present one toolkit of the list."""
    users = len(one.users)
    return toolkits.ToolkitLine(
        key=one.toolkit.key,
        title=one.toolkit.title or one.toolkit.key,
        description=one.toolkit.description,
        marks=tuple(marks(one.toolkit)),
        tools=words.number(len(one.members)),
        tokens=words.about(one.tokens),
        users=f"{words.number(users)} of {words.number(one.agents)}",
        percent=round(100 * users / one.agents) if one.agents else 0,
        switched=switched(one),
    )


def marks(toolkit: catalog.Toolkit) -> Iterable[access.Mark]:
    """Give the words that stand beside a toolkit's title wherever it is."""
    if toolkit.blocked:
        yield access.Mark(word="stopped for everyone", tone="danger")
    if toolkit.plugin:
        yield access.Mark(word=f"code of {toolkit.plugin}")


def switched(one: Held) -> str:
    """Say for how many agents the switch is set."""
    counts = Counter(one.switches.values())
    told = [
        f"{word} for {words.number(counts[on])}" for word, on in (("on", True), ("off", False)) if counts[on]
    ]
    return ", ".join(told)


def cell(holder: holdings.Holder, toolkit: catalog.Toolkit, *, may_change: bool) -> toolkits.Cell:
    """Present one agent's switch of a toolkit, to one who may change it or not."""
    decisions = list(holder.decisions(toolkit).values())
    on = holder.agent.switches.get(toolkit.key)
    state: access.State = next(
        (word for word in _STATES if any(one.state == word for one in decisions)), "dormant"
    )
    active = sum(one.state == "active" for one in decisions)
    return toolkits.Cell(
        agent=holder.agent.key,
        toolkit=toolkit.key,
        id=f"at:{holder.agent.key}:{toolkit.key}",
        what=f"{toolkit.title or toolkit.key} for {holder.agent.key}",
        wants="false" if on else "true",
        other="false" if on is None else "unset",
        switch=access.Switch(
            stored=words.stored(on), words={True: "On", False: "Off", None: "Follows defaults"}[on]
        ),
        state=state,
        word=f"{active} of {len(decisions)} active" if active else _WORDS[state],
        short=f"{active}/{len(decisions)}" if active else _WORDS[state],
        reason=_reason(decisions, state),
        protected=holder.agent.protected,
        may_change=may_change,
    )


def answer(
    found: holdings.Holdings,
    agent: str,
    shown: Sequence[str],
    *,
    here: str,
    notice: answers.Notice,
) -> toolkits.CellsAnswer:
    """Fill what a change of an agent leaves behind on a page that shows its switches of these toolkits."""
    kits = [found.catalog.toolkits[key] for key in shown if key in found.catalog.toolkits]
    holders = [holder for holder in found.holders if holder.agent.key == agent]
    return toolkits.CellsAnswer(
        cells=tuple(cell(holder, kit, may_change=True) for holder in holders for kit in kits),
        toolkits=tuple(line(held(found, kit)) for kit in kits),
        notice=notice,
        may_change=True,
        here=here,
    )


def _reason(decisions: Iterable[resolution.Decision], state: str) -> str:
    """Say why, of those in this state: in the words of most of them."""
    told = Counter(reasons.in_words(one) for one in decisions if one.state == state)
    if not told:
        return "it has no tools"
    (reason, _), *others = told.most_common()
    return f"{reason}, and {len(others)} other reason{'' if len(others) == 1 else 's'}" if others else reason


def _fits(one: Held, said: Mapping[str, Any]) -> bool:
    toolkit, query = one.toolkit, str(said["q"]).strip().casefold()
    texts = (toolkit.key, toolkit.title, toolkit.description, *one.members)
    if query and not any(query in text.casefold() for text in texts):
        return False
    match said["show"]:
        case "used":
            return bool(one.users)
        case "unused":
            return not one.users
        case "stopped":
            return toolkit.blocked
        case "code":
            return bool(toolkit.plugin)
    return True


def _column(name: str, label: str, said: Mapping[str, Any], sort: str, path: str) -> pieces.Column:
    # Of numbers, one wants to see the largest first.
    first = name if name == "toolkit" else f"-{name}"
    other = f"-{name}" if first == name else name
    wanted = other if sort == first else first
    kept = {key: value for key, value in said.items() if value and key not in ("sort", "offset")}
    order = "ascending" if sort == name else "descending" if sort == f"-{name}" else ""
    return pieces.Column(
        name=name, label=label, url=f"{path}?{urlencode({**kept, 'sort': wanted})}", order=order
    )
