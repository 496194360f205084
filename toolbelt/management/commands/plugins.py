"""Which plugins run here, are they sound, and what of them is configured? (``manage.py plugins ACT``)"""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import actors
from toolbelt.control import plugins as configured
from toolbelt.core import catalog, errors
from toolbelt.management import columns, terminal
from toolbelt.plugins import info
from toolbelt.runtime import plugins as running


class Command(terminal.Command):
    """List, check, enable, disable or sync plugins."""

    help = "Look after the plugins that are installed and listed in TOOLBELT_PLUGINS_FILE."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take one of five acts."""
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        acts.add_parser(
            "list", help="list the plugins that run here, that are stored, and that are installed"
        )
        acts.add_parser("check", help="load and initialize every plugin; exit with 1 if one has a problem")
        acts.add_parser(
            "sync", help="store what the plugins offer: new tools, changed ones, those that are gone"
        )
        for act, does in (
            ("enable", "switch a plugin on; a new one is synced, one that has failed gets another chance"),
            ("disable", "switch a plugin off, for every agent"),
        ):
            one = acts.add_parser(act, help=does)
            one.add_argument("name", metavar="NAME")
            one.add_argument("--reason", metavar="TEXT", default="", help="why, for the audit log")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Do it, and print what came of it."""
        try:
            match act:
                case "list":
                    self._print(columns.lines(_rows()))
                    self._print(_errors())
                case "check":
                    self._check()
                case "sync":
                    self._synced(configured.sync(_actor(), running.initialize()))
                case "enable":
                    self._enable(options["name"], options["reason"])
                case "disable":
                    done = configured.disable(_actor(), options["name"], reason=options["reason"])
                    was = " already" if done.is_nothing else ""
                    self.stdout.write(f"{options['name']} is off{was}: its tools are available to nobody.")
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        finally:
            running.stop()

    def _check(self) -> None:
        failed = [plugin for plugin in running.initialize() if plugin.state == "failed"]
        for plugin in running.live():
            self.stdout.write(f"{plugin.name}: {plugin.state}, {plugin.tool_count} tools")
        problems = [str(problem) for problem in running.loaded().problems]
        problems += [str(problem) for plugin in running.live() for problem in plugin.problems]
        # What could not be loaded is among the problems of the file already.
        problems += [f"{plugin.source}: {plugin.name}: {plugin.error}" for plugin in failed if plugin.tools]
        for problem in problems:
            self.stderr.write(problem)
        if problems:
            sys.exit(1)
        self.stdout.write("No problems.")

    def _enable(self, name: str, reason: str) -> None:
        if name not in configured.stored() and name not in (plugin.name for plugin in running.live()):
            for installed in running.loaded().available:
                if installed.name == name:
                    file = conf.PLUGINS_FILE or "a file, and set TOOLBELT_PLUGINS_FILE to its path"
                    raise CommandError(
                        f"{name} is installed, and not listed: add '- id: {name}' to tool_plugins: in {file}."
                    )
        self._synced(configured.enable(_actor(), name, running.initialize(), reason=reason))
        self.stdout.write(f"{name} is on.")

    def _synced(self, done: configured.Synced) -> None:
        self._print(f"created {name}" for name in done.created)
        self._print(f"changed {name}" for name in done.changed if name.partition(" ")[2] not in done.retired)
        self._print(f"retired tool {key}: its plugin no longer offers it" for key in done.retired)
        self._print(
            f"{key} is new in its plugin: it is off until an operator has seen it" for key in done.unseen
        )
        for problem in done.problems:
            self.stderr.write(str(problem))
        if not (done.created or done.changed or done.problems):
            self.stdout.write("Everything is as the plugins have it.")

    def _print(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.stdout.write(line)


def _actor() -> actors.Actor:
    return actors.Actor(name=getpass.getuser(), via="command")


def _rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Say of every plugin its name, namespace, state, number of tools and source."""
    yield "name", "namespace", "state", "tools", "source"
    stored = dict(configured.stored())
    for plugin in running.live():
        row = stored.pop(plugin.name, None)
        yield plugin.name, plugin.namespace, _state(row, plugin), str(plugin.tool_count), plugin.source
    for name, row in stored.items():
        state = row.status if row.active else "off"
        where = "an MCP server: see `mcp list`" if row.upstream else "not run here"
        yield name, row.namespace, f"{state}, {where}", "", ""
    for installed in running.loaded().available:
        where = f"{installed.module}:{installed.attribute}"
        yield installed.name, "", "installed, not listed", "", where


def _errors() -> Iterator[str]:
    """Say why those that have failed did, below the table: a long reason would push its columns out of sight."""
    here = {plugin.name: plugin for plugin in running.live()}
    found = {name: error for name, error in configured.failures().items() if name not in here}
    found |= {name: plugin.error for name, plugin in here.items() if plugin.state == "failed"}
    yield from (f"\n{name} has failed: {error}" for name, error in found.items())


def _state(row: catalog.Plugin | None, plugin: info.PluginInfo) -> str:
    if plugin.state == "failed":
        return "failed"
    if row is None:
        return "not synced"
    if not row.active:
        return "off"
    return "failed elsewhere" if row.status == "failed" else "on"
