"""``manage.py mcp ACTION``: add, list, refresh and review upstream MCP servers."""

from __future__ import annotations

import argparse
import getpass
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import approvals, decisions, elicitation, inbox, instructions, sign_ins
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.core import connections, errors
from toolbelt.management import columns, files, mcp_import, mcp_texts, terminal
from toolbelt.runtime import plugins
from toolbelt.runtime.upstream import server_lists

# The minimum of hex digits of a version's hash that identifies it.
MIN_DIGITS = 8
_HASH = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},64}}")
# The options of `mcp add` that are not about the connection.
_NOT_THE_CONNECTION = ("namespace", "title", "category", "trust")


class Command(terminal.Command):
    """Manage upstream MCP servers and their tools."""

    help = "Manage upstream MCP servers: add servers, refresh their tools, review and approve them."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands."""
        commands = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        _add_server_options(commands.add_parser("add", help="store a server, and list its tools"))
        mcp_import.add_arguments(
            commands.add_parser("import", help="store the servers of an MCP client's configuration file")
        )
        commands.add_parser("list", help="list the servers, their state, and what to review")
        refresh = commands.add_parser(
            "refresh", help="list the servers' tools again; exit with 1 if a server cannot be reached"
        )
        refresh.add_argument(
            "names", metavar="NAME", nargs="*", help="the servers (default: all that are on)"
        )
        review = commands.add_parser(
            "review", help="list new, changed, renamed and removed tools: a line each, or everything of them"
        )
        review.add_argument("name", metavar="NAME", help="the server's name")
        review.add_argument("tools", metavar="TOOL", nargs="*", help="only these tools")
        review.add_argument(
            "--full",
            action="store_true",
            help="print everything: the differences, and what a new tool declares",
        )
        for name, description in (
            ("approve", "approve tools, as printed by review"),
            ("reject", "reject tools, as printed by review: they are blocked for everyone"),
        ):
            command = commands.add_parser(name, help=description)
            command.add_argument("name", metavar="NAME", help="the server's name")
            command.add_argument(
                "tools", metavar="TOOL=HASH", nargs="*", help="a tool in the version printed by review"
            )
            command.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")
            if name == "approve":
                command.add_argument(
                    "--as-they-are",
                    action="store_true",
                    help="approve tools without a hash, or all tools to review, in their current version",
                )
                command.add_argument(
                    "--file",
                    metavar="FILE",
                    help="approve the versions in a JSON or YAML file of hashes by tool, also those that are not"
                    " declared yet",
                )

        keep = commands.add_parser(
            "keep", help="keep the approved descriptions of tools, whatever their server lists"
        )
        keep.add_argument("name", metavar="NAME", help="the server's name")
        keep.add_argument(
            "tools", metavar="TOOL", nargs="*", help="the tools (default: all, also later ones)"
        )
        keep.add_argument("--off", action="store_true", help="follow the server's descriptions again")
        keep.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

        told = commands.add_parser(
            "instructions",
            help="show what a server tells models; with HASH, mark it as seen or use it as policy",
        )
        told.add_argument("name", metavar="NAME", help="the server's name")
        told.add_argument(
            "hash", metavar="HASH", nargs="?", default="", help="the text, as printed without it"
        )
        told.add_argument("--use-in", metavar="TOOLKIT", help="append the text to this toolkit's policy")
        told.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

        sign_out = commands.add_parser("sign-out", help="forget the sign-in at a server")
        sign_out.add_argument("name", metavar="NAME", help="the server's name")
        sign_out.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

        elicit = commands.add_parser(
            "elicitation", help="create an entry that lets a server ask users, to be granted like a tool"
        )
        elicit.add_argument("name", metavar="NAME", help="the server's name")
        elicit.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Run the subcommand."""
        try:
            match act:
                case "add":
                    self._add(options)
                case "import":
                    self._print(mcp_import.run(_write(options), options))
                case "list":
                    self._print(columns.lines(mcp_texts.rows()))
                    self._print(mcp_texts.failures())
                case "refresh":
                    self._refresh(options["names"])
                case "review":
                    review = configured.review(options["name"])
                    self._print(mcp_texts.reviewed(review, options["tools"], is_full=options["full"]))
                    self._print(mcp_texts.unseen_instructions(options["name"]))
                case "approve":
                    self._approve(options)
                case "reject":
                    self._reject(options)
                case "keep":
                    self._keep(options)
                case "instructions":
                    self._instructions(options)
                case "sign-out":
                    was_signed_in = sign_ins.end(_write(options), options["name"])
                    self.stdout.write(
                        f"Signed out at {options['name']}."
                        if was_signed_in
                        else f"No changes: no one is signed in at {options['name']}."
                    )
                case "elicitation":
                    key = elicitation.ensure_entry(_write(options), options["name"])
                    self.stdout.write(f"{key} lets {options['name']} ask users.")
                    gains = inbox.new_access([key])
                    granted = mcp_texts.on_for(key, gains).strip()
                    self._print([granted] if granted else mcp_texts.not_granted([key], gains))
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        finally:
            plugins.stop()

    def _add(self, options: dict[str, Any]) -> None:
        if options["replace"]:
            self._replace_connection(options)
            return
        try:
            configured.add(
                _write(options),
                options["name"],
                _connection(options),
                namespace=options["namespace"],
                title=options["title"],
                category=options["category"],
                trusted=options["trust"],
            )
        except entries.NameTaken as error:
            raise errors.Refused(mcp_texts.name_taken(options["name"])) from error
        plugin = approvals.find(options["name"], "upstream")
        self.stdout.write(f"Stored {plugin.name}. Its tools' names begin with {plugin.namespace}__.")
        self._refresh([plugin.name], is_new=True)

    def _replace_connection(self, options: dict[str, Any]) -> None:
        name = options["name"]
        if others := [f"--{option}" for option in _NOT_THE_CONNECTION if options[option]]:
            raise errors.Refused(f"--replace changes only the connection: leave out {', '.join(others)}.")
        change = configured.replace_connection(_write(options), name, _connection(options))
        if change.entry is None:
            self.stdout.write(f"No changes: the connection of {name} is already up to date.")
        else:
            self.stdout.write(f"Changed the connection of {name}.")
        self._refresh([name])

    def _refresh(self, names: list[str], *, is_new: bool = False) -> None:
        names = names or [server.plugin.name for server in configured.servers() if server.plugin.active]
        write = _write({})

        def record(name: str, listed: server_lists.ServerListing) -> configured.RecordedTools:
            result = configured.record(write, name, listed)
            if is_new:
                # A server that is running may have listed and recorded them first.
                result = configured.with_all_new(name, result)
            self._print(mcp_texts.recorded(name, listed, result))
            for problem in result.problems:
                self.stderr.write(f"  {problem}")
            return result

        results = server_lists.refresh(names, record)
        failed = [name for name in names if name not in results or results[name].error]
        if not names:
            self.stdout.write(f"There are no upstream servers. Add one with `{conf.COMMAND} mcp add`.")
        if failed:
            again = f"{conf.COMMAND} mcp refresh {' '.join(failed)}"
            self.stderr.write(f"Not refreshed: {', '.join(failed)}. To try again: {again}")
            sys.exit(1)

    def _reject(self, options: dict[str, Any]) -> None:
        name = options["name"]
        versions = self._shown(name, options["tools"])
        for key in decisions.reject(_write(options), versions, plugin=name) if versions else ():
            self.stdout.write(f"Rejected {key}: it is blocked for everyone.")

    def _instructions(self, options: dict[str, Any]) -> None:
        name, toolkit, named = options["name"], options["use_in"], options["hash"].lower()
        found = instructions.find(name)
        if not named and not toolkit:
            self._print(mcp_texts.instructions(found))
            return
        shown = mcp_texts.hash_of_instructions(found)
        if named != shown and (len(named) < MIN_DIGITS or not shown.startswith(named)):
            raise errors.Refused(
                f"{named or 'No hash'} is not the text that {name} states now: name the hash that"
                f" `{conf.COMMAND} mcp instructions {name}` prints."
            )
        if toolkit:
            instructions.use(_write(options).replace(confirm=True), name, found.shown, toolkit)
            self._print(f"  ! {flag}" for flag in found.flags)
            self.stdout.write(f"The instructions of {name} are part of the policy of {toolkit}.")
        else:
            instructions.see(_write(options), name, found.shown)
            self.stdout.write(f"Marked the instructions of {name} as seen.")

    def _keep(self, options: dict[str, Any]) -> None:
        name, tools, on = options["name"], options["tools"], not options["off"]
        changes = decisions.set_kept(_write(options), name, tools, on=on)
        subject = ", ".join(tools) or f"the tools of {name}"
        if all(change.is_nothing for change in changes):
            state = "are kept already" if on else "follow the server already"
            self.stdout.write(f"No changes: the descriptions of {subject} {state}.")
        else:
            kept = f"Agents keep the approved descriptions of {subject}."
            self.stdout.write(kept if on else f"The descriptions of {subject} follow the server again.")

    def _approve(self, options: dict[str, Any]) -> None:
        name, tools = options["name"], options["tools"]
        if options["file"]:
            self._preapprove(options)
            return
        versions = self._shown(name, tools)
        if not versions:
            return
        without_hash = [key for key in versions if key not in _hashes(tools)]
        if without_hash and not options["as_they_are"]:
            raise errors.Refused(mcp_texts.hash_required(name, without_hash))
        findings, objections = inbox.warnings(versions), inbox.objections(versions)
        approval = decisions.approve(_write(options), versions, plugin=name)
        gains = inbox.new_access(approval.keys)
        previous_names = {new: old for old, new in approval.carried}
        for key in approval.keys:
            carried = f", with the settings of {previous_names[key]}" if key in previous_names else ""
            self.stdout.write(f"Approved {key}{carried}.{mcp_texts.on_for(key, gains)}")
            self._print(f"  ! {flag}" for tool, flag in findings if tool == key)
            self._print(f"  providers: {objection}" for tool, objection in objections if tool == key)
        self._print(mcp_texts.not_granted(approval.keys, gains))
        for problem in approval.problems:
            self.stderr.write(str(problem))

    def _preapprove(self, options: dict[str, Any]) -> None:
        name, versions = options["name"], files.read(options["file"])
        if options["tools"] or options["as_they_are"]:
            raise errors.Refused("--file names the tools and their versions: leave out the others.")
        if not isinstance(versions, dict) or not all(isinstance(value, str) for value in versions.values()):
            raise errors.Refused(f"{options['file']} is not a mapping of tools to hashes.")
        approval = decisions.preapprove(_write(options), name, versions)
        gains = inbox.new_access(approval.keys)
        for key in versions:
            if key in approval.keys:
                self.stdout.write(f"Approved {key}.{mcp_texts.on_for(key, gains)}")
            else:
                self.stdout.write(f"Approved {key} in advance.")

    def _shown(self, name: str, tools: list[str]) -> Mapping[str, str]:
        """Return the versions of the named tools, or of all to review. Raise errors.Refused for another hash."""
        waiting = {change.key: change.version_hash for change in configured.review(name).to_review}
        hashes = _hashes(tools)
        keys = [word.partition("=")[0] for word in tools] or list(waiting)
        for key in keys:
            if key not in waiting:
                raise errors.NotFound(f"tool of {name} to review", key, waiting)
            if not mcp_texts.digits(waiting[key]).startswith(hashes.get(key, "")):
                message = (
                    f"{hashes[key]} is not the version of {key} that awaits review: it changed since, or the hash is"
                    f" mistyped. Run `{conf.COMMAND} mcp review {name}`, and name the version that it prints:"
                    f" {key}=HASH."
                )
                raise errors.Refused(message)
        if not keys:
            self.stdout.write(f"{name} has no tools to review.")
        return {key: waiting[key] for key in keys}

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(line)


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name for the server")
    transport = parser.add_mutually_exclusive_group(required=True)
    transport.add_argument("--url", metavar="URL", help="the server's address, for Streamable HTTP")
    transport.add_argument(
        "--command",
        metavar="CMD",
        nargs=argparse.REMAINDER,
        help="the command that runs the server, with its arguments; must be the last option",
    )
    parser.add_argument(
        "--env",
        metavar="K=V",
        action="append",
        default=[],
        help="an environment variable of the command; write secrets as ${VAR}",
    )
    parser.add_argument(
        "--header", metavar="K=V", action="append", default=[], help="an HTTP header; write secrets as ${VAR}"
    )
    parser.add_argument("--bearer", metavar="${VAR}", help="the server's access token, as a variable")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="change the connection of a server that exists: these options replace all of it",
    )
    parser.add_argument("--cwd", metavar="DIR", help="the directory that the command runs in")
    parser.add_argument("--namespace", metavar="N", help="the prefix of its tools' names (default: NAME)")
    parser.add_argument(
        "--timeout", metavar="S", type=int, help="the time limit of a response, in seconds (default: 30)"
    )
    parser.add_argument(
        "--sharing",
        choices=connections.SHARING,
        help="who shares a connection (default: session for a command and for an HTTP server with sessions,"
        " otherwise shared)",
    )
    parser.add_argument(
        "--idle",
        metavar="S",
        type=int,
        help="how long an agent's or session's connection stays open without a call, in seconds"
        f" (default: {connections.IDLE})",
    )
    parser.add_argument(
        "--max-connections",
        metavar="N",
        type=int,
        help=f"the maximum number of connections per process (default: {connections.MAX_CONNECTIONS})",
    )
    parser.add_argument(
        "--revision",
        choices=connections.REVISIONS,
        help="the revision of MCP to speak, or with the first an earlier one (default: what the server answers)",
    )
    parser.add_argument(
        "--sign-in",
        choices=connections.SIGN_INS,
        help="who signs in with OAuth, in the dashboard (default: no one)",
    )
    parser.add_argument(
        "--client-id",
        metavar="ID",
        help="a client that you registered there (default: Toolbelt registers itself)",
    )
    parser.add_argument("--client-secret", metavar="${VAR}", help="its secret, as a variable")
    parser.add_argument(
        "--issuer",
        metavar="URL",
        help="the authorization server for which the client is (default: confirmed with the first sign-in)",
    )
    parser.add_argument(
        "--scopes", metavar="TEXT", help="the scopes to ask for, separated by spaces (default: the server's)"
    )
    for kind in ("result", "resource"):
        parser.add_argument(
            f"--{kind}-bytes", metavar="N", type=int, help=f"the largest {kind} of the server, in bytes"
        )
    parser.add_argument("--title", metavar="TEXT", default="", help="a display name")
    parser.add_argument("--category", metavar="C", default="", help="the category of its tools")
    parser.add_argument("--trust", action="store_true", help="approve its new tools automatically")
    parser.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")


OPTIONS = ("timeout", *connections.RARE_FIELDS, *connections.SIGN_IN_FIELDS)


def _connection(options: dict[str, Any]) -> dict[str, Any]:
    command = options["command"] or []
    headers = _pairs("--header", options["header"])
    if options["bearer"]:
        headers["Authorization"] = f"Bearer {options['bearer']}"
    fields = {
        "command": command[0] if command else None,
        "args": command[1:],
        "env": _pairs("--env", options["env"]),
        "cwd": options["cwd"],
        "url": options["url"],
        "headers": headers,
        **{name: options[name] for name in OPTIONS},
    }
    # A limit of 0 stays, so that it is refused.
    return {field: value for field, value in fields.items() if value or value == 0}


def _pairs(option: str, values: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for pair in values:
        name, is_pair, value = pair.partition("=")
        if not is_pair:
            raise CommandError(f"{option} {pair!r} is not valid. Write NAME=VALUE.")
        pairs[name.strip()] = value
    return pairs


def _hashes(tools: Iterable[str]) -> dict[str, str]:
    """Return the hashes by tool, for the arguments that have one."""
    hashes: dict[str, str] = {}
    for word in tools:
        key, has_hash, version = word.partition("=")
        if not has_hash:
            continue
        hashes[key] = mcp_texts.digits(version.lower())
        if not _HASH.fullmatch(hashes[key]):
            message = (
                f"{word!r} is not valid. Write TOOL=HASH, with {MIN_DIGITS} to 64 hex digits, as `mcp review`"
                " prints it."
            )
            raise errors.Refused(message)
    return hashes


def _write(options: Mapping[str, Any]) -> writing.Write:
    return writing.by(getpass.getuser(), via="command", reason=options.get("reason", ""))
