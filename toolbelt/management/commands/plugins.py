"""``manage.py plugins ACTION``: list, check, sync, create, enable and disable plugins."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django import db
from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import plugins as configured
from toolbelt.core import catalog, errors, texts
from toolbelt.management import columns, terminal
from toolbelt.plugins import info
from toolbelt.runtime import plugins as running


class Command(terminal.Command):
    """List, check, sync, create, enable or disable plugins."""

    help = "Manage the plugins that are installed and listed in TOOLBELT_PLUGINS_FILE."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands."""
        commands = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        commands.add_parser("list", help="list running, stored and installed plugins")
        commands.add_parser(
            "check", help="load and initialize every plugin; exit with 1 if one has a problem"
        )
        commands.add_parser("sync", help="store the plugins' tools: new, changed and removed")
        create = commands.add_parser(
            "create", help="create a plugin whose tools the agent's own program runs"
        )
        create.add_argument("name", metavar="NAME", help="the plugin's name")
        create.add_argument("--namespace", metavar="NS", default="", help="the beginning of its tools' keys")
        create.add_argument("--title", metavar="TEXT", default="", help="its title in the dashboard")
        create.add_argument(
            "--declared-by",
            metavar="AGENT",
            action="append",
            default=[],
            help="an agent whose program may declare the tools; can be repeated (default: operators only)",
        )
        create.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
        for name, description in (
            ("enable", "switch a plugin on; syncs a new plugin, and retries a failed one"),
            ("disable", "switch a plugin off for every agent"),
        ):
            command = commands.add_parser(name, help=description)
            command.add_argument("name", metavar="NAME", help="the plugin's name")
            command.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Run the subcommand."""
        try:
            match act:
                case "list":
                    self._print(columns.lines(_rows()))
                    self._print(_errors())
                case "check":
                    self._check()
                case "sync":
                    self._synced(configured.sync(_write(), running.initialize()))
                case "create":
                    self._create(options)
                case "enable":
                    self._enable(options["name"], options["reason"])
                case "disable":
                    change = configured.disable(_write(options["reason"]), options["name"])
                    already = "already " if change.is_nothing else ""
                    self.stdout.write(f"{options['name']} is {already}off. No agent can use its tools.")
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        finally:
            running.stop()

    def _create(self, options: Mapping[str, Any]) -> None:
        fields = {field: options[field] for field in ("name", "namespace", "title", "declared_by")}
        entry = {field: value for field, value in fields.items() if value}
        entries.create(_write(options["reason"]), "plugin", entry)
        self.stdout.write(f"{entry['name']} created. Declare its tools, then review them.")

    def _check(self) -> None:
        problems = [str(problem) for problem in running.loaded(logs=False).problems]
        failed = [plugin for plugin in running.initialize() if plugin.state == "failed"]
        for plugin in running.live():
            tools = texts.counted(plugin.tool_count, "tool")
            self.stdout.write(f"{plugin.name}: {plugin.state}, {tools}")
        problems += [str(problem) for plugin in running.live() for problem in plugin.problems]
        # Plugins that could not be loaded are already among the problems of the file.
        problems += [f"{plugin.source}: {plugin.name}: {plugin.error}" for plugin in failed if plugin.tools]
        problems += self._conflicts(problems)
        for problem in problems:
            self.stderr.write(problem)
        if problems:
            sys.exit(1)
        self.stdout.write("No problems.")

    def _conflicts(self, reported: Collection[str]) -> list[str]:
        """Return the names that the database already uses; none if there is no database."""
        try:
            problems = [str(problem) for problem in configured.check(running.live())]
        except db.Error as error:
            self.stderr.write(
                f"Not compared with what is stored, because the database cannot be read: {error}"
            )
            return []
        return [problem for problem in problems if problem not in reported]

    def _enable(self, name: str, reason: str) -> None:
        if name not in configured.stored() and name not in (plugin.name for plugin in running.live()):
            for installed in running.loaded().available:
                if installed.name == name:
                    file = conf.PLUGINS_FILE or "a file, and set TOOLBELT_PLUGINS_FILE to its path"
                    raise CommandError(
                        f"{name} is installed but not listed. Add '- id: {name}' to tool_plugins: in {file}."
                    )
        self._synced(configured.enable(_write(reason), name, running.initialize()), is_quiet=True)
        self.stdout.write(f"{name} is on.")

    def _synced(self, result: configured.Synced, *, is_quiet: bool = False) -> None:
        self._print(f"created {name}" for name in result.created)
        self._print(
            f"changed {name}" for name in result.changed if name.partition(" ")[2] not in result.retired
        )
        self._print(f"retired tool {key}: its plugin no longer offers it" for key in result.retired)
        self._print(
            f"{key} is a new tool of its plugin: it is off until an operator reviews it"
            for key in result.unseen
        )
        for problem in result.problems:
            self.stderr.write(str(problem))
        if result.created or result.changed:
            self.stdout.write(
                "Restart Toolbelt's servers if they are running: they load plugins when they start, and until then"
                " these tools may not run."
            )
        if result.not_running:
            self.stdout.write(f"Not running until servers are restarted: {', '.join(result.not_running)}.")
        if not (result.created or result.changed or result.problems or is_quiet):
            self.stdout.write("No changes: all plugins are up to date.")

    def _print(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.stdout.write(line)


def _write(reason: str = "") -> writing.Write:
    return writing.by(getpass.getuser(), via="command", reason=reason)


def _rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the name, namespace, state, number of tools and source of every plugin."""
    yield "name", "namespace", "state", "tools", "source"
    stored = dict(configured.stored())
    for plugin in running.live():
        row = stored.pop(plugin.name, None)
        yield plugin.name, plugin.namespace, _state(row, plugin), str(plugin.tool_count), plugin.source
    for name, row in stored.items():
        state = row.status if row.active else "off"
        where = "an MCP server: see `mcp list`" if row.upstream else "not running here"
        yield name, row.namespace, f"{state}, {where}", "", ""
    for installed in running.loaded().available:
        where = f"{installed.module}:{installed.attribute}"
        yield installed.name, "", "installed, not listed", "", where


def _errors() -> Iterator[str]:
    """Yield the errors of failed plugins. They are printed below the table, because they can be long."""
    here = {plugin.name: plugin for plugin in running.live()}
    failures = {name: error for name, error in configured.failures().items() if name not in here}
    failures |= {name: plugin.error for name, plugin in here.items() if plugin.state == "failed"}
    yield from (f"\n{name} has failed: {error}" for name, error in failures.items())


def _state(row: catalog.Plugin | None, plugin: info.PluginInfo) -> str:
    if plugin.state == "failed":
        return "failed"
    if row is None:
        return "not synced"
    if not row.active:
        return "off"
    return "failed elsewhere" if row.status == "failed" else "on"
