"""How do the plugins that run become what is configured, and how is one switched on and off?

The rules of :func:`sync`, before the code:

1. A plugin that is new gets a row. Its first tools count as seen, as the operator who syncs knows what is installed;
   those that appear later are unseen until an operator has looked, unless the plugin is trusted.
2. What the code says of a tool (title, description, schemas, annotations) follows the code. Its category and its
   default are the code's when the tool is new, and the operators' from then on.
3. A tool that the code no longer offers is retired, and one that comes back is not retired any more.
4. A toolkit in code is the code's, but for its emergency stop and its place. One that the code no longer has is the
   operators' from then on.
5. What collides is reported with both sources, and the rest goes on. A plugin that is not loaded here is left alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.control import actors, entries, provided, writing
from toolbelt.core import belts, catalog, errors
from toolbelt.plugins import contract, info
from toolbelt.store import plugins as rows
from toolbelt.store import snapshots

SYSTEM = actors.Actor(name="toolbelt", via="system")
REASON = "as the installed code has it"
LONGEST_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a sync did, by kind and name, and what it could not do."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    retired: tuple[str, ...]
    unseen: tuple[str, ...]
    problems: tuple[errors.Problem, ...]


def sync(actor: actors.Actor, live: Iterable[info.PluginInfo], *, reason: str = REASON) -> Synced:
    """Bring the rows in step with the plugins that run here, in one transaction and one batch of the audit."""
    with writing.begin():
        made = _Sync(actor=actor, reason=reason)
        known = [plugin for plugin in live if made.plugin(plugin)]
        made.look_again()
        for plugin in known:
            made.tools(plugin)
        made.look_again()
        for plugin in known:
            made.toolkits(plugin)
    return Synced(
        created=tuple(made.created),
        changed=tuple(made.changed),
        retired=tuple(made.retired),
        unseen=tuple(made.unseen),
        problems=tuple(made.problems),
    )


def enable(
    actor: actors.Actor, name: str, live: Iterable[info.PluginInfo] = (), *, reason: str = ""
) -> Synced:
    """Switch a plugin on, and give one that has failed another chance; one that is new here is synced first."""
    with writing.begin():
        here = [plugin for plugin in live if plugin.name == name]
        done = sync(actor, here)
        if done.problems and name not in snapshots.catalog().plugins:
            raise errors.Invalid(done.problems)
        # Of one that is loaded here, the sync has said how it is.
        chance = {} if here else {"status": None}
        entries.change(actor, "plugin", name, {"active": None, **chance}, reason=reason)
    return done


def disable(actor: actors.Actor, name: str, *, reason: str = "") -> writing.Change:
    """Switch a plugin off: none of its tools is available to anyone, from the next question or call on."""
    return entries.change(actor, "plugin", name, {"active": False}, reason=reason)


def found_broken(name: str, error: str) -> None:
    """Write that a process found the plugin broken; its tools are unavailable everywhere until it is enabled again."""
    with writing.begin():
        stored = snapshots.catalog().plugins.get(name)
        if stored is None:
            return
        if stored.status != "failed":
            entries.change(SYSTEM, "plugin", name, {"status": "failed"}, reason=error[:LONGEST_REASON])
        rows.tell_error(name, error)


def stored() -> Mapping[str, catalog.Plugin]:
    """Give the plugins that are configured, by name, in order."""
    return snapshots.catalog().plugins


def failures() -> Mapping[str, str]:
    """Give the error of each plugin that has failed."""
    return rows.errors()


@dataclass(slots=True, kw_only=True)
class _Sync:
    """One sync under way. ``stored`` is what there was when it last looked."""

    actor: actors.Actor
    reason: str
    batch: uuid.UUID = field(default_factory=writing.new_batch)
    stored: catalog.Catalog = field(default_factory=snapshots.catalog)
    known: belts.Known = field(default_factory=entries.known)
    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    problems: list[errors.Problem] = field(default_factory=list)

    def look_again(self) -> None:
        """Look at what is stored now."""
        self.stored, self.known = snapshots.catalog(), entries.known()

    def plugin(self, live: info.PluginInfo) -> bool:
        """Bring the plugin's own row in step; say whether its tools may follow."""
        self.problems += live.problems
        now = self.stored.plugins.get(live.name)
        # One that could not even be loaded says nothing of itself.
        unread = live.state == "failed" and not live.tools
        if unread and now is None:
            return False
        wanted: dict[str, Any] = belts.entry("plugin", now) if now else {"name": live.name}
        if not unread:
            wanted |= {"namespace": live.namespace, "title": live.title, "description": live.description}
            wanted["category"] = wanted.get("category") or live.category
        wanted["status"] = "failed" if live.state == "failed" else "ready"
        went = self._put("plugin", wanted, now, live)
        if live.state == "failed":
            rows.tell_error(live.name, live.error)
        return went and not unread

    def tools(self, live: info.PluginInfo) -> None:
        """Bring its tools in step."""
        of_plugin = self.stored.tools_of_plugin.get(live.name, ())
        is_seen = not of_plugin or self.stored.plugins[live.name].trusted
        wanted = []
        for tool in live.tools:
            if provided.is_taken(tool.name, live.name, self.stored, self.known):
                self.problems.append(self._taken("tools", tool.name, live))
                continue
            now = self.stored.tools.get(tool.name)
            kept = belts.entry("tool", now) if now else _new_tool(tool, live.name, is_seen)
            kept.pop("output_schema", None)
            wanted.append(kept | _said_of(tool))
        offered = {tool.name for tool in live.tools}
        gone = [key for key in of_plugin if key not in offered and not self.stored.tools[key].retired]
        wanted += [{**belts.entry("tool", self.stored.tools[key]), "retired": True} for key in gone]
        done = provided.write(
            self.actor,
            wanted,
            source=_named(live),
            stored=self.stored,
            known=self.known,
            reason=self.reason,
            batch=self.batch,
        )
        self.created += [f"tool {key}" for key in done.created]
        self.changed += [f"tool {key}" for key in done.changed]
        self.problems += done.problems
        self.retired += gone
        self.unseen += () if is_seen else done.created

    def toolkits(self, live: info.PluginInfo) -> None:
        """Bring its toolkits in step, and leave to operators those that it no longer has."""
        for toolkit in live.toolkits:
            now = self.stored.toolkits.get(toolkit.key)
            owner = self.known.owner("toolkit", toolkit.key)
            if (now is None and owner is not None) or (now is not None and now.plugin != live.name):
                self.problems.append(self._taken("toolkits", toolkit.key, live))
                continue
            for member in toolkit.members:
                if member not in self.stored.tools:
                    path = f"toolkits.{toolkit.key}.members"
                    message = f"There is no tool {member!r}: {_named(live)} has the toolkit without it."
                    self.problems.append(errors.Problem(path=path, message=message))
            blocked = {"blocked": True} if now is not None and now.blocked else {}
            self._put("toolkit", _toolkit(toolkit, live.name, self.stored) | blocked, now, live)
        had = {toolkit.key for toolkit in live.toolkits}
        for key, now in self.stored.toolkits.items():
            if now.plugin == live.name and key not in had:
                self._put("toolkit", {**belts.entry("toolkit", now), "plugin": ""}, now, live)

    def _put(self, kind: belts.KindName, wanted: Mapping[str, Any], now: Any, live: info.PluginInfo) -> bool:
        """Write an entry that differs from what is stored; report what stands against it, and say whether it went."""
        name = wanted[entries.naming(kind)]
        try:
            if now is not None and belts.entry(kind, now) == self._normal(kind, wanted):
                return True
            entries.put(
                self.actor,
                kind,
                wanted,
                reason=self.reason,
                batch=self.batch,
                in_code=True,
                beside=self.known,
            )
        except errors.Invalid as error:
            self.problems += [
                errors.Problem(path=problem.path, message=f"{problem.message} It comes from {_named(live)}.")
                for problem in error.problems
            ]
            return False
        (self.created if now is None else self.changed).append(f"{kind} {name}")
        return True

    def _normal(self, kind: belts.KindName, wanted: Mapping[str, Any]) -> Any:
        """Give the entry as it would be stored, without what has its default."""
        return belts.entry(kind, belts.value(kind, dict(wanted), self.stored))

    def _taken(self, section: str, key: str, live: info.PluginInfo) -> errors.Problem:
        return provided.taken(section, key, _named(live), self.stored, self.known)


def _named(live: info.PluginInfo) -> str:
    return f"the plugin {live.name!r} ({live.source})" if live.source else f"the plugin {live.name!r}"


def _new_tool(tool: contract.ToolDefinition, plugin: str, is_seen: bool) -> dict[str, Any]:
    return {
        "key": tool.name,
        "plugin": plugin,
        "category": tool.category,
        "default_on": tool.default_on,
        "seen": is_seen,
    }


def _said_of(tool: contract.ToolDefinition) -> dict[str, Any]:
    """Give what the code says of a tool, and goes on saying; offered as it is, it is not retired."""
    said: dict[str, Any] = {
        "title": tool.title,
        "description": tool.description,
        "input_schema": dict(tool.input_schema),
        "annotations": dict(tool.annotations),
        "retired": False,
    }
    if tool.output_schema is not None:
        said["output_schema"] = dict(tool.output_schema)
    return said


def _toolkit(toolkit: contract.CodeToolkit, plugin: str, stored: catalog.Catalog) -> dict[str, Any]:
    members = [key for key in toolkit.members if key in stored.tools]
    return {
        "key": toolkit.key,
        "title": toolkit.title,
        "description": toolkit.description,
        "plugin": plugin,
        "members": [_use(key, toolkit.options.get(key)) for key in members],
        "policy_when_off": toolkit.policy_when_off,
        "examples": toolkit.examples,
    }


def _use(key: str, options: Mapping[str, Any] | None) -> Any:
    return key if options is None else {"tool": key, "options": dict(options)}
