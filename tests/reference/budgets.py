"""What a budget defers: the section "Budgets" of docs/semantics.md."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

from tests.reference import belts, policy
from tests.reference.rules import Decision, View, decide_all

Count = Callable[[str], int]
INCLUDED = ("loadout-plugin", "loadout-category", "default-on")


@functools.lru_cache(64)
def resolve(view: View, count: Count) -> dict[str, Decision]:
    """Return the decision about every tool, after the budget."""
    decisions = decide_all(view)
    if limits(view).get("on_exceed") != "defer":
        return decisions
    for name, group in groups(view, decisions):
        if fits(view, decisions, count):
            break
        decisions = without(decisions, group, name)
    return decisions


def without(decisions: Mapping[str, Decision], group: set[str], name: str) -> dict[str, Decision]:
    """Return the decisions after a group of tools was deferred."""
    deferred = Decision("discoverable", "budget", ("budget", name))
    return {key: deferred if key in group and it.state == "active" else it for key, it in decisions.items()}


def limits(view: View) -> Mapping[str, object]:
    return view.agent.get("budget") or {}


def active(view: View, decisions: Mapping[str, Decision]) -> list[str]:
    """Return the tools that the model has. Prompts, resources and the like do not count."""
    return [k for k, it in decisions.items() if it.state == "active" and belts.is_tool(view.belt.tools[k])]


def spent(view: View, decisions: Mapping[str, Decision], count: Count) -> dict[str, int]:
    """Return the number of active tools, and the tokens of their definitions and of the policy."""
    keys = active(view, decisions)
    definitions = sum(view.belt.tools[key].get("tokens", 0) for key in keys)
    texts = sum(count(section.text) for section in policy.sections(view, decisions))
    return {"max_tools": len(keys), "max_tokens": definitions + texts}


def exceeded(view: View, decisions: Mapping[str, Decision], count: Count) -> dict[str, int]:
    """Return what is over its limit, with how much is spent."""
    return {
        limit: value
        for limit, value in spent(view, decisions, count).items()
        if limits(view).get(limit) is not None and value > limits(view)[limit]  # type: ignore[operator]
    }


def fits(view: View, decisions: Mapping[str, Decision], count: Count) -> bool:
    return not exceeded(view, decisions, count)


def groups(view: View, decisions: Mapping[str, Decision]) -> Iterator[tuple[str, set[str]]]:
    """Yield the tools that are deferred together, with the name of what they belong to, from the first to the last."""
    keys = active(view, decisions)
    # What the session loaded gives a subagent nothing (rule 8).
    session = () if view.subagent is not None else view.loads
    # A load keeps the tools that it needs when something older goes.
    newest = {key: max(loads) for key in keys if session and (loads := list(loads_of(view, key)))}
    included = {key for key in keys if decisions[key].code in INCLUDED} - newest.keys()
    loose = [key for key in included if not belts.toolkits_of(view.belt, key)]
    for key in sorted(loose, reverse=True):
        yield key, {key}
    for name in reversed(view.belt.toolkits):
        yield name, included & belts.members(view.belt.toolkits[name]).keys()
    in_session = {key for key in keys if decisions[key].code in ("initial", "loaded", *INCLUDED)}
    for name in reversed(view.belt.toolkits):
        if name in view.initial() and view.subagent is None:
            yield (
                name,
                (in_session - included - newest.keys()) & belts.members(view.belt.toolkits[name]).keys(),
            )
    for place, (_, name) in enumerate(session):
        yield name, {key for key in in_session if newest.get(key) == place}


def loads_of(view: View, key: str) -> Iterator[int]:
    """Yield the places of the loads that provide a tool."""
    plugin = view.belt.tools[key].get("plugin") or ""
    for place, (kind, name) in enumerate(view.loads):
        if kind == "toolkit":
            if name in view.loaded() and key in belts.members(view.belt.toolkits[name]):
                yield place
        elif name == (key if kind == "tool" else plugin):
            yield place
