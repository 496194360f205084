"""Synchronizing the configuration with the plugins that run, and enabling and disabling plugins.

The rules of :func:`sync`:

1. A new plugin gets a row. Its first tools count as seen, because the operator who syncs knows what is installed; later
   ones are unseen until they are reviewed, unless the plugin is trusted. The row is marked as code (`in_code`).
2. A tool's title, description, schemas and annotations follow the code. Its category and its default are taken from the
   code when the tool is new, and belong to operators afterwards.
3. A tool that the code no longer offers is retired, and one that returns is no longer retired.
4. A toolkit in code belongs to the code, except whether it is blocked and its position. One that the code no longer has
   belongs to operators, until the code has it again.
5. Conflicts are reported with both sources, and everything else continues. A plugin that is not loaded here is
   unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import running_tools, tool_writes
from toolbelt.core import belts, catalog, errors, facts, limits, tool_versions
from toolbelt.plugins import contract, info
from toolbelt.store import audit, snapshots
from toolbelt.store import plugins as rows

SYSTEM = writing.by("toolbelt", via="system")
REASON = facts.IN_CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The result of a sync: changes by kind and name, and the problems.

    ``not_running`` are the tools that servers run only after a restart; empty if no server is known to run.
    """

    created: tuple[str, ...]
    changed: tuple[str, ...]
    retired: tuple[str, ...]
    unseen: tuple[str, ...]
    problems: tuple[errors.Problem, ...]
    not_running: tuple[str, ...] = ()


def sync(write: writing.Write, live: Iterable[info.PluginInfo]) -> Synced:
    """Synchronize the rows with the plugins that run here, in one transaction and one batch of the audit log."""
    with writing.begin():
        run = _Sync(write=write.replace(reason=write.reason or REASON).in_batch())
        synced = [plugin for plugin in live if run.plugin(plugin)]
        run.reload()
        for plugin in synced:
            run.tools(plugin)
        run.reload()
        for plugin in synced:
            run.toolkits(plugin)
    return Synced(
        created=tuple(run.created),
        changed=tuple(run.changed),
        retired=tuple(run.retired),
        unseen=tuple(run.unseen),
        problems=tuple(run.problems),
        not_running=running_tools.not_running(
            sorted(tool.name for plugin in synced for tool in plugin.tools)
        ),
    )


def check(live: Iterable[info.PluginInfo]) -> tuple[errors.Problem, ...]:
    """Return the problems that a sync would have, such as a name that is taken in the database; nothing is written."""
    with writing.dry_run():
        return sync(SYSTEM, live).problems


def enable(write: writing.Write, name: str, live: Iterable[info.PluginInfo] = ()) -> Synced:
    """Enable a plugin, and give one that has failed another chance; a new one is synced first."""
    with writing.begin():
        loaded_here = [plugin for plugin in live if plugin.name == name]
        synced = sync(write.replace(reason=REASON), loaded_here)
        if synced.problems and name not in snapshots.catalog().plugins:
            raise errors.Invalid(synced.problems)
        # For a plugin that is loaded here, the sync has set the status.
        reset = {} if loaded_here else {"status": None}
        if reset:
            entries.change(write.observed_by(name, "program"), "plugin", name, reset)
        entries.change(write, "plugin", name, {"active": None})
    return synced


def disable(write: writing.Write, name: str) -> writing.Change:
    """Disable a plugin: its tools are unavailable from the next request or call."""
    return entries.change(write, "plugin", name, {"active": False})


def record_failure(name: str, error: str) -> None:
    """Record that a plugin failed in a process; its tools are unavailable everywhere until it is enabled again."""
    with writing.begin():
        stored = snapshots.catalog().plugins.get(name)
        if stored is None:
            return
        if stored.status != "failed":
            write = SYSTEM.observed_by(name, "program").replace(reason=error[: limits.REASON_LENGTH])
            entries.change(write, "plugin", name, {"status": "failed"})
        rows.set_error(name, error)


def stored() -> Mapping[str, catalog.Plugin]:
    """Return the configured plugins by name, in order."""
    return snapshots.catalog().plugins


def failures() -> Mapping[str, str]:
    """Return the error of each plugin that has failed."""
    return rows.errors()


@dataclass(slots=True, kw_only=True)
class _Sync:
    """A sync in progress. ``stored`` is the catalog as it was last read."""

    write: writing.Write
    stored: catalog.Catalog = field(default_factory=snapshots.catalog)
    names: belts.NameIndex = field(default_factory=entries.name_index)
    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    problems: list[errors.Problem] = field(default_factory=list)

    def reload(self) -> None:
        """Read the stored catalog again."""
        self.stored, self.names = snapshots.catalog(), entries.name_index()

    def plugin(self, live: info.PluginInfo) -> bool:
        """Synchronize the plugin's own row; return whether its tools may follow."""
        self.problems += live.problems
        now = self.stored.plugins.get(live.name)
        # A plugin that could not be loaded has no title or description.
        is_unloaded = live.state == "failed" and not live.tools
        if is_unloaded and now is None:
            return False
        entry: dict[str, Any] = belts.entry("plugin", now) if now else {"name": live.name}
        if not is_unloaded:
            entry |= {"namespace": live.namespace, "title": live.title, "description": live.description}
            entry["category"] = entry.get("category") or live.category
        entry["status"] = "failed" if live.state == "failed" else "ready"
        entry["in_code"] = True
        entry.pop("declared_by", None)
        was_written = self._put("plugin", entry, now, live)
        if live.state == "failed":
            rows.set_error(live.name, live.error)
        return was_written and not is_unloaded

    def tools(self, live: info.PluginInfo) -> None:
        """Synchronize the plugin's tools."""
        own_keys = self.stored.tools_of_plugin.get(live.name, ())
        # Those that only a belt named were never offered.
        is_first = all(tool_versions.is_only_named(self.stored.tools[key]) for key in own_keys)
        is_seen = is_first or self.stored.plugins[live.name].trusted
        to_write = []
        for tool in live.tools:
            if tool_writes.is_taken(tool.name, live.name, self.stored, self.names):
                self.problems.append(self._taken_problem("tools", tool.name, live))
                continue
            now = self.stored.tools.get(tool.name)
            unchanged = belts.entry("tool", now) if now else _new_tool(tool, live.name, is_seen)
            unchanged.pop("output_schema", None)
            to_write.append(unchanged | _from_code(tool))
        offered = {tool.name for tool in live.tools}
        gone = [key for key in own_keys if key not in offered and not self.stored.tools[key].retired]
        to_write += [{**belts.entry("tool", self.stored.tools[key]), "retired": True} for key in gone]
        written = tool_writes.store_tools(
            self.write.observed_by(live.name, "program"),
            to_write,
            source=_describe(live),
            stored=self.stored,
            names=self.names,
        )
        self.created += [f"tool {key}" for key in written.created]
        self.changed += [f"tool {key}" for key in written.changed]
        self.problems += written.problems
        self.retired += gone
        self.unseen += () if is_seen else written.created

    def toolkits(self, live: info.PluginInfo) -> None:
        """Synchronize its toolkits, and leave those that it no longer has to operators."""
        for toolkit in live.toolkits:
            now = self.stored.toolkits.get(toolkit.key)
            owner = self.names.owner("toolkit", toolkit.key)
            is_taken = (
                now.plugin != live.name and not self._was_own(now, live.name) if now else owner is not None
            )
            if is_taken:
                self.problems.append(self._taken_problem("toolkits", toolkit.key, live))
                continue
            for member in toolkit.members:
                if member not in self.stored.tools:
                    path = f"toolkits.{toolkit.key}.members"
                    message = f"There is no tool {member!r}: {_describe(live)} gets the toolkit without it."
                    self.problems.append(errors.Problem(path=path, message=message))
            before = {} if now is None else belts.entry("toolkit", now)
            block = {field: before[field] for field in ("blocked", "block_ends") if field in before}
            self._put("toolkit", _toolkit(toolkit, live.name, self.stored) | block, now, live)
        offered = {toolkit.key for toolkit in live.toolkits}
        for key, now in self.stored.toolkits.items():
            if now.plugin == live.name and key not in offered:
                self._put("toolkit", {**belts.entry("toolkit", now), "plugin": ""}, now, live)

    @staticmethod
    def _was_own(toolkit: catalog.Toolkit, plugin: str) -> bool:
        """Return whether operators have the toolkit only because the plugin's code did not have it for a while."""
        if toolkit.plugin:
            return False
        for action, _, before, after in audit.since(0, "toolkit", toolkit.key):
            if action in ("toolkit.create", "toolkit.appear") or not isinstance(after, Mapping):
                return False
            if "plugin" in after:
                return isinstance(before, Mapping) and before.get("plugin") == plugin
        return False

    def _put(self, kind: belts.KindName, entry: Mapping[str, Any], now: Any, live: info.PluginInfo) -> bool:
        """Write an entry if it differs from what is stored; report problems, and return whether it was written."""
        name = entry[entries.name_field(kind)]
        try:
            if now is not None and belts.entry(kind, now, with_secrets=True) == self._normal(kind, entry):
                return True
            write = self.write.observed_by(live.name, "program")
            entries.put(write, kind, entry, index=self.names)
        except errors.Invalid as error:
            self.problems += [
                errors.Problem(
                    path=problem.path, message=f"{problem.message} It comes from {_describe(live)}."
                )
                for problem in error.problems
            ]
            return False
        (self.created if now is None else self.changed).append(f"{kind} {name}")
        return True

    def _normal(self, kind: belts.KindName, entry: Mapping[str, Any]) -> Any:
        """Return the entry as it would be stored, without default values."""
        return belts.entry(kind, belts.value(kind, dict(entry), self.stored), with_secrets=True)

    def _taken_problem(self, section: str, key: str, live: info.PluginInfo) -> errors.Problem:
        return tool_writes.taken_problem(section, key, _describe(live), self.stored, self.names)


def _describe(live: info.PluginInfo) -> str:
    return f"the plugin {live.name!r} ({live.source})" if live.source else f"the plugin {live.name!r}"


def _new_tool(tool: contract.ToolDefinition, plugin: str, is_seen: bool) -> dict[str, Any]:
    return {
        "key": tool.name,
        "plugin": plugin,
        "category": tool.category,
        "default_on": tool.default_on,
        "seen": is_seen,
    }


def _from_code(tool: contract.ToolDefinition) -> dict[str, Any]:
    """Return the fields of a tool that follow the code; an offered tool is not retired."""
    entry: dict[str, Any] = {
        "title": tool.title,
        "description": tool.description,
        "input_schema": dict(tool.input_schema),
        "annotations": dict(tool.annotations),
        "retired": False,
    }
    if tool.output_schema is not None:
        entry["output_schema"] = dict(tool.output_schema)
    return entry


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
