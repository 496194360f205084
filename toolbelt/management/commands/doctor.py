"""``manage.py doctor``: what is wrong with this installation, and what to do about it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core import checks

import toolbelt
from toolbelt import locations
from toolbelt.control import self_checks
from toolbelt.control.doctor import configuration, database, findings, machine, options, people
from toolbelt.core import addresses, errors, texts
from toolbelt.management import server_findings, terminal
from toolbelt.runtime import plugins

# Django's own checks about what TOOLBELT_INSECURE_HTTP turns off; toolbelt.W001 says the same in one sentence.
_CONSEQUENCES_OF_PLAIN_HTTP = frozenset({"security.W004", "security.W008", "security.W012", "security.W016"})
# Explains the system checks.
_CHECKS = locations.document("reference/errors.md")


class Command(terminal.Command):
    """Examine the installation."""

    help = "Check this installation and suggest fixes. Exits with 1 if something is wrong."
    # They are part of what is examined, and must not end the command.
    requires_system_checks: list[str] = []
    # Whether replays are right; None if that cannot be found out.
    _checked: self_checks.SelfCheck | None = None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument(
            "--no-servers", action="store_true", help="do not connect to the upstream servers"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the findings."""
        try:
            all_findings = [*self._findings(ask_servers=not options["no_servers"])]
        finally:
            plugins.stop()
        problems = [finding for finding in all_findings if finding.level == "problem"]
        if options["json"]:
            self.stdout.write_json(json.dumps(_document(all_findings), indent=2) + "\n")
        else:
            self._print(all_findings, problems)
            if self._checked is not None:
                self.stdout.write(self._checked.sentence)
        if problems:
            sys.exit(1)

    def _print(self, all_findings: list[findings.Finding], problems: list[findings.Finding]) -> None:
        for finding in sorted(all_findings, key=lambda finding: finding.level != "problem"):
            label = "Problem" if finding.level == "problem" else "Note"
            self.stdout.write(f"{label}: {finding.message} ({finding.code})")
            self.stdout.write(f"  {finding.way_out}\n")
        if problems:
            self.stdout.write(f"{texts.counted(len(problems), 'problem')}.")
        else:
            self.stdout.write(f"Nothing is wrong with this installation (Toolbelt {toolbelt.__version__}).")

    def _findings(self, *, ask_servers: bool) -> Iterator[findings.Finding]:
        unreachable = database.unreachable()
        if unreachable is not None:
            yield unreachable
        yield from _system_checks(with_database=unreachable is None)
        yield from machine.examine()
        if unreachable is not None:
            return
        examined = [*database.examine()]
        yield from examined
        if any(finding.code == "migrations-pending" for finding in examined):
            return  # what follows reads tables that may be missing
        yield from people.examine()
        yield from options.examine()
        try:
            self._checked = self_checks.current()
            yield from configuration.examine(self._checked)
            yield from server_findings.examine(ask=ask_servers)
        except errors.ToolbeltError as error:
            way_out = "Restore a backup, or import a corrected configuration."
            yield findings.Finding(code="configuration", message=str(error), way_out=way_out)


def _system_checks(*, with_database: bool) -> Iterator[findings.Finding]:
    is_local = all(addresses.is_this_machine(host) for host in settings.ALLOWED_HOSTS)
    is_public = settings.ENVIRONMENT == "production" and not (settings.INSECURE_HTTP and is_local)
    messages = checks.run_checks(
        databases=["default"] if with_database else None, include_deployment_checks=is_public
    )
    ids = {message.id for message in messages}
    for message in messages:
        if message.is_silenced() or message.level < checks.WARNING:
            continue
        if "toolbelt.W001" in ids and message.id in _CONSEQUENCES_OF_PLAIN_HTTP:
            continue
        yield findings.Finding(
            code=message.id or "check",
            message=message.msg,
            way_out=message.hint or f"{_CHECKS} explains this check, or Django's documentation.",
        )


def _document(all_findings: list[findings.Finding]) -> dict[str, Any]:
    return {
        "ok": not any(finding.level == "problem" for finding in all_findings),
        "version": toolbelt.__version__,
        "findings": [finding.document() for finding in all_findings],
    }
