"""What an agent may load: the sections "Sessions" and "What an agent may load" of docs/semantics.md.

A surface asks for its own request; a call of a meta-tool for the next one, in which a load counts.
"""

from __future__ import annotations

import dataclasses

from tests.reference import belts, budgets
from tests.reference.belts import Entry
from tests.reference.rules import Load, View, decide_all, is_blocked_now, options_of


def targets(view: View, name: str) -> list[Load]:
    """Return what a name may mean: a toolkit, a tool, a plugin."""
    loads = []
    if name in view.belt.toolkits:
        loads.append(("toolkit", name))
    if name in view.belt.tools and belts.is_tool(view.belt.tools[name]):
        loads.append(("tool", name))
    if name in view.belt.plugins:
        loads.append(("plugin", name))
    return loads


def find(view: View, name: str, count: budgets.Count) -> Load | None:
    """Return the first meaning of a name that the agent may load, else the first."""
    loads = targets(view, name)
    return next((load for load in loads if is_allowed(view, load, count)), loads[0] if loads else None)


def is_allowed(view: View, load: Load, count: budgets.Count) -> bool:
    """Return whether the configuration lets the agent load something."""
    kind, name = load
    return name in view.allowed() if kind == "toolkit" else bool(tools_of(view, load, count))


def tools_of(view: View, load: Load, count: budgets.Count) -> list[str]:
    """Return the tools that a load would bring."""
    kind, name = load
    if kind == "toolkit":
        return [key for key in belts.members(view.belt.toolkits[name]) if key in view.belt.tools]
    return [
        key
        for key, tool in view.belt.tools.items()
        if belts.is_tool(tool)
        and name == (key if kind == "tool" else tool.get("plugin"))
        and is_offered(view, key, count)
    ]


def is_offered(view: View, key: str, count: budgets.Count) -> bool:
    """Return whether a tool may be loaded by name: a pattern matches it, or the budget deferred it, or would if it were
    not loaded.
    """
    plugin = view.belt.tools[key].get("plugin") or ""
    if view.pattern_for(key, plugin) or budgets.resolve(view, count)[key].code == "budget":
        return True
    is_loaded = ("tool", key) in view.loads or ("plugin", plugin) in view.loads
    is_active = budgets.resolve(view, count)[key].state == "active"
    return budgets.limits(view).get("on_exceed") == "defer" and is_loaded and is_active


def is_initial(view: View, load: Load) -> bool:
    return load[0] == "toolkit" and load[1] in view.initial()


def is_loaded(view: View, load: Load) -> bool:
    """Return whether the session has something."""
    return load in view.loads or is_initial(view, load)


def with_load(view: View, load: Load) -> View:
    """Return the request after the load, which counts as the newest."""
    return dataclasses.replace(view, loads=(*(it for it in view.loads if it != load), load))


def load_status(view: View, name: str, count: budgets.Count) -> str:
    """Return the status of a load."""
    load = find(view, name, count)
    if load is None:
        return "unknown"
    if not is_allowed(view, load, count):
        return "not_allowed"
    after = with_load(view, load)
    decisions, now = decide_all(after), budgets.resolve(view, count)
    tools = tools_of(view, load, count)
    states = {decisions[key].state for key in tools}
    if view.subagent is not None or is_shut(view, load):
        return "denied"
    if states == {"unavailable"}:
        return "unavailable"
    if states <= {"denied", "unavailable"}:
        return "denied"
    if is_over_budget(view, after, tools, count):
        return "over_budget"
    if is_loaded(view, load) and not any(now[key].code == "budget" for key in tools):
        return "already_loaded"
    if not view.has_session:
        return "no_session"
    if conflict(view, load, tools) is not None:
        return "conflict"
    return "loaded"


def is_shut(view: View, load: Load) -> bool:
    """Return whether the switch of a toolkit is off, or what is loaded is blocked."""
    kind, name = load
    entry = {"toolkit": view.belt.toolkits, "tool": view.belt.tools, "plugin": view.belt.plugins}[kind][name]
    return is_blocked_now(view, entry) or (kind == "toolkit" and view.config.get(name) is False)


def is_over_budget(view: View, after: View, tools: list[str], count: budgets.Count) -> bool:
    """Return whether the budget refuses a load, or has no room for it beside what is never deferred. A load that adds
    no tool always fits.
    """
    manner = budgets.limits(view).get("on_exceed", "warn")
    before, decisions = decide_all(view), decide_all(after)
    if manner == "defer":
        for name, group in list(budgets.groups(view, before)):
            before = budgets.without(before, group, name)
        for name, group in list(budgets.groups(after, decisions)):
            decisions = budgets.without(decisions, group - set(tools), name)
    adds = set(budgets.active(after, decisions)) > set(budgets.active(view, before))
    return manner in ("refuse", "defer") and adds and not budgets.fits(after, decisions, count)


def conflict(view: View, load: Load, tools: list[str]) -> tuple[str, Entry, Entry] | None:
    """Return a tool to which a load passes other options than the source that it has already, with both options."""
    decisions = decide_all(with_load(view, load))
    for key in tools:
        existing = next((options for _, options in options_of(view, key)), None)
        own = (belts.members(view.belt.toolkits[load[1]])[key] or {}) if load[0] == "toolkit" else {}
        if decisions[key].state == "active" and existing is not None and existing != own:
            return key, existing, own
    return None


def unload_status(view: View, name: str, count: budgets.Count) -> str:
    """Return the status of an unload."""
    load = find_loaded(view, name, count)
    if load is None:
        return "unknown"
    if not is_allowed(view, load, count):
        return "not_allowed"
    if is_initial(view, load):
        return "sticky"
    if not view.has_session:
        return "no_session"
    if view.subagent is not None or load not in view.loads:
        return "not_loaded"
    return "unloaded"


def find_loaded(view: View, name: str, count: budgets.Count) -> Load | None:
    """Return the first meaning of a name that the agent may load and the session has, else as for a load."""
    mine = [it for it in targets(view, name) if is_allowed(view, it, count) and is_loaded(view, it)]
    return mine[0] if mine else find(view, name, count)


def has_meta_tools(view: View, count: budgets.Count) -> bool:
    """Return whether a load or an unload would succeed."""
    if not view.has_session or view.subagent is not None:
        return False
    on_request = [key for key, it in budgets.resolve(view, count).items() if it.state == "discoverable"]
    return any(unload_status(view, name, count) == "unloaded" for _, name in view.loads) or any(
        load_status(view, name, count) == "loaded" for name in (*view.allowed(), *on_request)
    )


def answers_meta_tools(view: View, count: budgets.Count) -> bool:
    """Return whether the configuration lets the agent load anything at all."""
    decisions = budgets.resolve(view, count)
    on_request = [
        key
        for key, it in decisions.items()
        if it.state == "discoverable" and belts.is_tool(view.belt.tools[key])
    ]
    by_name = [load for load in view.loads if load[0] != "toolkit"]
    return bool(view.allowed() or on_request or by_name)


def loadable_toolkits(view: View, count: budgets.Count) -> list[str]:
    """Return the toolkits that are loaded or can be, without the initial ones, in the allowed order."""
    if not has_meta_tools(view, count):
        return []
    return [
        name
        for name in view.allowed()
        if name not in view.initial() and load_status(view, name, count) in ("loaded", "already_loaded")
    ]


def listed(view: View, count: budgets.Count) -> list[str]:
    """Return the toolkits that ``list_toolkits`` lists, in the allowed order.

    They are loaded, can be loaded, or could be after an unload.
    """
    emptied = dataclasses.replace(view, loads=())
    result = []
    for name in view.allowed():
        status = load_status(view, name, count)
        if status in ("over_budget", "conflict"):
            status = load_status(emptied, name, count)
        if status in ("loaded", "already_loaded"):
            result.append(name)
    return result
