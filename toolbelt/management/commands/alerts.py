"""``manage.py alerts [list | test]``: where alerts are sent, their deliveries, and a test."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import alerts, writing
from toolbelt.core import errors
from toolbelt.management import columns, terminal

MAX_LISTED = 20


class Command(terminal.Command):
    """List where alerts are sent and their latest deliveries, or send a test."""

    help = "List where alerts are sent and their latest deliveries, or send a test to a destination."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands; without one, list."""
        commands = parser.add_subparsers(dest="act", metavar="ACTION")
        commands.add_parser("list", help="list the destinations, and the latest deliveries")
        test = commands.add_parser("test", help="send a test to a destination")
        test.add_argument("destination", metavar="DESTINATION", help="its name in the file of destinations")

    def handle(self, *args: Any, act: str | None, **options: Any) -> None:
        """Run the subcommand."""
        try:
            self._test(options["destination"]) if act == "test" else self._list()
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error

    def _test(self, destination: str) -> None:
        delivery = alerts.test(writing.by(getpass.getuser(), via="command"), destination)
        if delivery.state != "delivered":
            raise CommandError(
                f"{destination} did not receive it: {delivery.error or 'nothing sends it here'}."
            )
        self.stdout.write(f"{destination} received a test.")

    def _list(self) -> None:
        plan = alerts.plan()
        for problem in plan.problems:
            self.stderr.write(problem)
        if not plan.destinations:
            self.stdout.write("Alerts are sent nowhere: name a file of destinations in TOOLBELT_ALERTS_FILE.")
        for line in columns.lines(
            (each.name, each.way, f"from {each.severity} on", "daily" if each.daily else "immediately")
            for each in plan.destinations
        ):
            self.stdout.write(line)
        for line in columns.lines(
            (each.destination, each.state, each.alert.event, each.alert.text, each.error)
            for each in alerts.latest(MAX_LISTED)
        ):
            self.stdout.write(line)
