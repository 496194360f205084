"""``manage.py connect AGENT --client CLIENT``: print or write the configuration of an MCP client."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control.agents import mcp_clients
from toolbelt.control.servers import states
from toolbelt.core import addresses, agents, errors
from toolbelt.management import terminal
from toolbelt.runtime import surfaces

# With --write and no FILE.
_USUAL = ""


class Command(terminal.Command):
    """Print or write the configuration that connects an MCP client to an agent."""

    help = "Print the configuration that connects an MCP client to an agent, or add it to the client's file."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the agent, the client, and where the configuration goes."""
        parser.add_argument("agent", metavar="AGENT", help="the agent's key")
        parser.add_argument(
            "--client",
            required=True,
            choices=[client.id for client in mcp_clients.CLIENTS],
            help="the MCP client",
        )
        parser.add_argument(
            "--url",
            metavar="URL",
            help="how the client reaches Toolbelt (default: the address of the running server, or the first of"
            " ALLOWED_HOSTS)",
        )
        parser.add_argument(
            "--name",
            default=mcp_clients.NAME,
            help="what the client calls this server, if it has several agents: letters, digits, _ and - (default:"
            " toolbelt)",
        )
        parser.add_argument(
            "--loading",
            choices=agents.MCP_LOADINGS,
            help="how this client loads tools (default: as the agent's settings say, or what suits the client)",
        )
        parser.add_argument(
            "--write",
            metavar="FILE",
            nargs="?",
            const=_USUAL,
            help="add it to FILE, or to the client's usual file; everything else in it stays",
        )
        parser.add_argument(
            "--replace", action="store_true", help="replace another server of this name in the file"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the configuration, or write it."""
        client, name = mcp_clients.find(options["client"]), options["name"]
        if not mcp_clients.is_name(name):
            raise CommandError(
                f"{name!r} is not a name for a server: use letters, digits, _ and -, at most 40."
            )
        try:
            shown = surfaces.ask(options["agent"])
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        if options["url"] is None:
            origin, known_from = _assumed_origin()
            self.stderr.write(f"{known_from} {origin}; pass --url for another.")
        else:
            origin = _origin(options["url"])
        chosen = mcp_clients.loading(client, shown.resolution.context.agent.mcp_loading)
        if options["loading"] is not None:
            chosen = mcp_clients.Loading(options["loading"], "")
        if chosen.why:
            self.stderr.write(chosen.why)
        loading = chosen.in_address
        for_file = options["write"] is not None
        text = mcp_clients.text(
            client, origin, options["agent"], name=name, for_file=for_file, loading=loading
        )
        if for_file:
            self._write(client, text, options)
            return
        self.stdout.write(text, ending="")
        if client.note:
            self.stderr.write(client.note)

    def _write(self, client: mcp_clients.Client, text: str, options: Mapping[str, Any]) -> None:
        """Add the configuration to the client's file, and say what is left to do."""
        file = Path(options["write"] or client.file).expanduser()
        # The placeholder will be replaced by the token.
        holds_token = mcp_clients.PLACEHOLDER in text
        text = text.replace(
            mcp_clients.PLACEHOLDER, os.environ.get("TOOLBELT_TOKEN") or mcp_clients.PLACEHOLDER
        )
        was_readable = _write(
            file, text, name=options["name"], replace=options["replace"], is_private=holds_token
        )
        self.stdout.write(f"{client.label} is configured in {file}.")
        if was_readable:
            self.stdout.write("Other users could read the file: now only you can, because it is for a token.")
        if holds_token and _is_in_repository(file):
            self.stderr.write(
                f"{file} is in a git repository that does not ignore it: add it to .gitignore, so that the token is"
                " not committed."
            )
        if mcp_clients.PLACEHOLDER in text:
            self.stdout.write(f"Replace {mcp_clients.PLACEHOLDER} there by a token:")
        elif "TOOLBELT_TOKEN" in text:
            self.stdout.write("It reads the token from TOOLBELT_TOKEN:")
        else:
            return
        # The client's file may be in another directory.
        command = getattr(settings, "ABSOLUTE_COMMAND", conf.COMMAND)
        self.stdout.write(f"  {command} token issue --agent {options['agent']} --days 90")


def _assumed_origin() -> tuple[str, str]:
    """Return the address of the installation, and what it is known from, as the beginning of a sentence.

    What others reach it by is only known by its host name. On this machine, a server that runs says its address.
    """
    host = next((host for host in settings.ALLOWED_HOSTS if not host.startswith((".", "*"))), "127.0.0.1")
    if not addresses.is_this_machine(host):
        return f"http{'' if settings.INSECURE_HTTP else 's'}://{host}", "Assumed address"
    served = [process.address for process in states.servers() if process.address]
    return (
        (served[0], "Address of the running server:")
        if served
        else (f"http://{host}:8000", "Assumed address")
    )


def _origin(url: str) -> str:
    """Return an address without its path; raise CommandError if it is not one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandError(f"{url!r} is not an address: use a form such as https://toolbelt.example.com")
    return f"{parts.scheme}://{parts.netloc}"


def _write(file: Path, text: str, *, name: str, replace: bool, is_private: bool) -> bool:
    """Add the configuration to the file. Raise CommandError, and leave the file unchanged then.

    A file that ``is_private`` becomes its owner's alone; return whether others could read or write it before.
    """
    try:
        existing = file.read_text(encoding="utf-8-sig") if file.exists() else ""
        merged = mcp_clients.merge(existing, text, name=name, is_toml=file.suffix == ".toml", replace=replace)
        target = file.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with open(handle, "w", encoding="utf-8") as opened:
                opened.write(merged)
            before = target.stat().st_mode & 0o777 if target.exists() else 0o600
            os.chmod(draft, before & 0o700 if is_private else before)
            os.replace(draft, target)
            return is_private and bool(before & 0o077)
        finally:
            Path(draft).unlink(missing_ok=True)
    except errors.ToolbeltError as error:
        raise CommandError(f"{file} was not changed. {error}") from error
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise CommandError(f"{file} cannot be written: {reason}.") from error


def _is_in_repository(file: Path) -> bool:
    """Return whether git tracks the file, or would with the next `git add`. False without git."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", file.name]
    try:
        listed = subprocess.run(  # noqa: S603
            words, cwd=file.resolve().parent, capture_output=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and bool(listed.stdout)
