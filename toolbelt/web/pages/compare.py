"""How is the comparison of two agents filled?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control import comparing, copying, past, queries
from toolbelt.core import agents as values
from toolbelt.core import belts, errors, grants, reasons
from toolbelt.web import words
from toolbelt.web.pages import agents, entries, model, paging, questions
from toolbelt.web.presenters import answers, compare, pieces

_LOADOUT = "loadout:"
OUTCOMES_AT_ONCE = 100
_SETTINGS = {
    "session_loadouts": "Loadouts for its sessions",
    "subagent_kinds": "Subagents",
    "mcp_loading": "Loading over MCP",
}
_LOADABLE = {"allowed": "may be loaded", "initial": "in every session", None: "may not be loaded"}
_ORDERS = {"always-on": "order of the always-on tools", "loadable": "order of the loadable toolkits"}


def page(
    said: Mapping[str, Any],
    *,
    path: str,
    here: str,
    notice: answers.Notice | None,
    may_copy: Callable[[str], tuple[str, ...] | None],
) -> compare.ComparePage:
    """Fill the page for the two sides that ``said`` names. ``may_copy`` says what of an agent the reader may change:
    all (empty), some parts, or nothing (None).
    """
    names = {side: _named(said[side], said[f"{side}_at"]) for side in ("a", "b")}
    trouble, found = "", None
    if all(names.values()):
        try:
            compared = comparing.compare(names["a"], names["b"])
            parts = may_copy(compared.b.key) if compared.b.is_now else None
            found = _differences(compared, names, said["show"], said["offset"], path, parts)
        except (errors.NotFound, errors.Invalid) as error:
            trouble = str(error)
    keys = queries.agent_keys()
    loadouts = comparing.loadouts_there()
    return compare.ComparePage(
        a=_chooser("a", "From", names["a"], keys, loadouts),
        b=_chooser("b", "To", names["b"], keys, loadouts),
        trouble=trouble,
        found=found,
        notice=notice,
        here=here,
    )


def url(a: str, b: str) -> str:
    """Give the address at which two sides are compared."""
    return f"{reverse('web:compare')}?{urlencode({'a': a, 'b': b})}"


def question(plan: copying.Plan, *, action: str, back: str) -> answers.Confirmation:
    """Ask whether these rows shall be copied, with what comes of it."""
    comparison = plan.comparison
    count = len(plan.rows)
    fields = [
        ("a", comparison.a.name),
        ("b", comparison.b.name),
        *(("row", row.id) for row in plan.rows),
        ("seen", plan.seen),
        ("next", back),
        ("confirm", "yes"),
    ]
    rows = (_row(row, comparison, frozenset()) for row in plan.rows)
    effect = model.effect(plan.effect)
    return answers.Confirmation(
        title=f"Copy {'1 difference' if count == 1 else f'{words.number(count)} differences'}"
        f" to {comparison.b.key}?",
        reasons=plan.reasons,
        effect=effect,
        differences=(
            *(pieces.Difference(prefix=row.prefix, what=row.what, before=row.b, after=row.a) for row in rows),
            *questions.tool_changes(plan.effect.added, plan.effect.removed),
        ),
        three_ways=False,
        action=action,
        fields=tuple(pieces.Field(name=name, value=value) for name, value in fields),
        confirm_word="Copy",
        dangerous=bool(plan.reasons),
        back=back,
    )


def version(found: past.Version) -> str:
    """Say which version of an agent this is: ``as it was after olive turned off devops``."""
    if found.last is None:
        return "as it was before its first change that is known"
    return f"as it was after {entries.told(found.last)}"


def doubts(found: past.Version) -> Iterator[str]:
    """Say what of a past version is not certain."""
    if found.gaps:
        yield f"Changed without the log, so not certain: {words.listing(found.gaps, 5)}."
    if found.gone:
        yield f"Not there any more, so left out: {words.listing(found.gone, 5)}."


def _named(name: str, at: Any) -> str:
    """Put a side together from what was chosen and the moment that was typed, if it does not name one already."""
    return f"{name}@{at.isoformat()}" if at and name and "@" not in name and ":" not in name else name


def _differences(
    found: comparing.Comparison,
    names: Mapping[str, str],
    show: str,
    offset: int | str,
    path: str,
    parts: tuple[str, ...] | None,
) -> compare.Differences:
    active = [one for one in found.outcomes if "active" in (one.a.state, one.b.state)]
    shown = found.outcomes if show == "all" else active
    part = paging.part(shown, offset, OUTCOMES_AT_ONCE)
    spent = found.a.resolved.spent, found.b.resolved.spent
    closed = {row.id for row in found.rows if parts and row.part not in parts}
    return compare.Differences(
        a=_side(found.a),
        b=_side(found.b),
        a_spelled=names["a"],
        b_spelled=names["b"],
        tools_delta=words.signed(spent[1].tools - spent[0].tools),
        tokens_delta=words.signed(spent[1].tokens - spent[0].tokens),
        groups=tuple(_groups(found, closed)),
        count=len(found.rows),
        copyable=len(found.rows) - len(found.lost | closed),
        outcomes=tuple(_outcome(one) for one in part.items),
        outcomes_pages=part.pages(
            {"a": names["a"], "b": names["b"], "show": show}, path, anchor="#outcomes-title"
        ),
        shows=(
            pieces.Choice(value="", label="Active on one side", chosen=show != "all", count=len(active)),
            pieces.Choice(value="all", label="All", chosen=show == "all", count=len(found.outcomes)),
        ),
        to=found.b.key if parts is not None else "",
        why_not=_why_not(found, parts),
        swap_url=f"{path}?{urlencode({'a': names['b'], 'b': names['a']})}",
    )


def _why_not(found: comparing.Comparison, parts: tuple[str, ...] | None) -> str:
    if not found.rows or parts is not None:
        return ""
    if not found.b.is_now:
        return "Rows are copied to the right: swap the sides so that an agent as it is stands there."
    return "You may look, and not copy: that takes the right to change agents."


def _side(side: comparing.Side) -> compare.Side:
    spent = side.resolved.spent
    about, moment = "as it is", None
    notes: tuple[str, ...] = ()
    agent = side.resolved.standing.agent
    if not side.key:
        about = "alone, as for an agent that has nothing else"
    if side.version is not None:
        about = version(side.version)
        moment = words.moment(side.version.last.at) if side.version.last else None
        notes = tuple(doubts(side.version))
    return compare.Side(
        name=side.key or side.loadout,
        about=about,
        moment=moment,
        profile=agents.profile(agent, side.loadout) if side.key else "loadout",
        tools=words.number(spent.tools),
        tokens=words.about(spent.tokens),
        notes=notes,
        url=_url_of(side),
    )


def _url_of(side: comparing.Side) -> str:
    if not side.key:
        return ""
    if side.version is None:
        return reverse("web:agent_access", args=[side.key])
    _, at = comparing.read(side.name, "")
    return f"{reverse('web:preview', args=[side.key])}?{urlencode({'at': comparing.spell('', at)[1:]})}"


def _groups(found: comparing.Comparison, closed: Collection[str]) -> Iterator[compare.Group]:
    toolkits = found.a.resolved.standing.catalog.toolkits
    titles: dict[str, list[compare.Row]] = {}
    for row in found.rows:
        titles.setdefault(_title(row, toolkits), []).append(_row(row, found, closed))
    for title in ("Settings", "Switches", "Overrides", "Always-on tools", "Loadable toolkits"):
        if title in titles:
            yield compare.Group(title=title, rows=tuple(titles[title]))


def _title(row: belts.Row, toolkits: Collection[str]) -> str:
    match row.part, row.name:
        case "switch", key:
            return "Switches" if key in toolkits else "Overrides"
        case ("always-on", _) | ("order", "always-on"):
            return "Always-on tools"
        case ("loadable", _) | ("order", _):
            return "Loadable toolkits"
    return "Settings"


def _row(row: belts.Row, found: comparing.Comparison, closed: Collection[str]) -> compare.Row:
    prefix, name = model.split(row.name) if row.part in ("switch", "always-on") else ("", row.name)
    if row.part == "setting":
        name = _SETTINGS.get(name, name.capitalize())
    elif row.part == "order":
        name = _ORDERS[name]
    return compare.Row(
        id=row.id,
        what=name,
        prefix=prefix,
        a=_value(row, row.a, found.a),
        b=_value(row, row.b, found.b),
        lost="cannot be copied: not there any more, or over"
        if row.id in found.lost
        else "not yours to copy"
        if row.id in closed
        else "",
    )


def _value(row: belts.Row, value: Any, side: comparing.Side) -> str:
    match row.part:
        case "switch":
            end = grants.moment(value.get("ends")) if isinstance(value, Mapping) else None
            said = words.state(value["on"] if isinstance(value, Mapping) else value)
            return f"{said} until {words.moment(end).full}" if end else said
        case "always-on":
            if value is None:
                return "not always on"
            return "always on" if value is True else f"always on, with {words.value(value)}"
        case "loadable":
            return _LOADABLE[value]
        case "order":
            return ", ".join(value)
    if row.name == "loadout" and value is None and side.loadout:
        return f"{side.loadout}, by its kind"
    if row.name == "budget":
        return _budget(value)
    if isinstance(value, list):
        return ", ".join(value)
    if row.name == "protected":
        return "yes" if value else "no"
    return words.value(value)


def _budget(budget: Mapping[str, Any] | None) -> str:
    if not budget:
        return "none"
    most = [
        f"{words.limit(budget[name])} {unit}"
        for name, unit in (("max_tools", "tools"), ("max_tokens", "tokens"))
        if name in budget
    ]
    return f"{' and '.join(most) or 'any number'}, then {budget.get('on_exceed', values.ON_EXCEED[0])}"


def _outcome(one: comparing.Outcome) -> compare.Outcome:
    prefix, name = model.split(one.tool.key)
    return compare.Outcome(
        key=one.tool.key,
        prefix=prefix,
        name=name,
        tokens=words.number(one.tool.tokens),
        a=one.a.state,
        a_reason=reasons.in_words(one.a),
        b=one.b.state,
        b_reason=reasons.in_words(one.b),
    )


def _chooser(
    name: str, label: str, chosen: str, keys: Sequence[str], loadouts: Sequence[str]
) -> compare.Chooser:
    choices = [pieces.Choice(value="", label="An agent …", chosen=not chosen)]
    key, found, at = chosen.partition("@")
    if found and not at.startswith("2"):
        # A version by the number of a change: a choice of its own, until another one is made.
        choices.append(pieces.Choice(value=chosen, label=f"{key}, as it was after change {at}", chosen=True))
        at = ""
    choices += [pieces.Choice(value=one, label=one, chosen=one == (key if at else chosen)) for one in keys]
    return compare.Chooser(
        name=name,
        label=label,
        agents=tuple(choices),
        loadouts=tuple(
            pieces.Choice(value=f"{_LOADOUT}{one}", label=one, chosen=chosen == f"{_LOADOUT}{one}")
            for one in loadouts
        ),
        at=at[:16],
    )
