"""Which upstream MCP servers are there, what do they offer, and what of it is approved? (``manage.py mcp ACT``)"""

from __future__ import annotations

import argparse
import getpass
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import actors, reviews
from toolbelt.control import upstreams as configured
from toolbelt.core import catalog, errors
from toolbelt.management import columns, terminal
from toolbelt.runtime import plugins, upstreams

# How many hex digits of a version's hash are printed, and how few name it.
PRINTED = 12
FEWEST = 8
_HASH = re.compile(rf"[0-9a-f]{{{FEWEST},64}}")


class Command(terminal.Command):
    """Add, list, refresh, review, approve and refuse."""

    help = "Look after upstream MCP servers: add them, ask them for their tools, approve what they offer."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take one of six acts."""
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        _adding(acts.add_parser("add", help="store a server, and ask it for its tools"))
        acts.add_parser("list", help="list the servers, how they are, and what waits for a look")
        refresh = acts.add_parser(
            "refresh", help="ask servers for their tools, side by side; exit with 1 if one cannot be asked"
        )
        refresh.add_argument("names", metavar="NAME", nargs="*", help="all that are on, if none is named")
        review = acts.add_parser("review", help="show what is new, changed, renamed and gone in a server")
        review.add_argument("name", metavar="NAME")
        for act, does in (
            ("approve", "let agents have what is shown by review"),
            ("refuse", "keep off what is shown by review: blocked for everyone"),
        ):
            one = acts.add_parser(act, help=does)
            one.add_argument("name", metavar="NAME")
            one.add_argument(
                "tools", metavar="TOOL=HASH", nargs="*", help="a tool, in the version that review printed"
            )
            one.add_argument("--reason", metavar="TEXT", default="", help="why, for the audit log")
            if act == "approve":
                one.add_argument(
                    "--as-they-are",
                    action="store_true",
                    help="take tools without a hash, or all that wait, whatever they say by now",
                )

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        """Do it, and print what came of it."""
        try:
            match act:
                case "add":
                    self._add(options)
                case "list":
                    self._print(columns.lines(_rows()))
                    self._print(_errors())
                case "refresh":
                    self._refresh(options["names"])
                case "review":
                    self._print(_reviewed(configured.review(options["name"])))
                case "approve":
                    self._approve(options)
                case "refuse":
                    self._refuse(options)
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        finally:
            plugins.stop()

    def _add(self, options: dict[str, Any]) -> None:
        configured.add(
            _actor(),
            options["name"],
            _connection(options),
            namespace=options["namespace"],
            title=options["title"],
            category=options["category"],
            trusted=options["trust"],
            reason=options["reason"],
        )
        plugin = configured.find(options["name"])
        self.stdout.write(f"{plugin.name} is stored: its tools are called {plugin.namespace}__….")
        self._refresh([plugin.name])

    def _refresh(self, names: list[str]) -> None:
        wanted = names or [server.plugin.name for server in configured.servers() if server.plugin.active]
        actor = _actor()

        def record(name: str, listed: upstreams.Answer) -> configured.Recorded:
            done = configured.record(actor, name, listed)
            self._print(_recorded(name, listed, done))
            for problem in done.problems:
                self.stderr.write(f"  {problem}")
            return done

        done = upstreams.refresh(wanted, record)
        failed = [name for name in wanted if name not in done or done[name].error]
        if not wanted:
            self.stdout.write(f"There are no upstream servers: add one with `{conf.COMMAND} mcp add`.")
        if failed:
            self.stderr.write(f"Not asked: {', '.join(failed)}.")
            sys.exit(1)

    def _refuse(self, options: dict[str, Any]) -> None:
        name = options["name"]
        shown = self._shown(name, options["tools"])
        for key in configured.refuse(_actor(), name, shown, reason=options["reason"]) if shown else ():
            self.stdout.write(f"{key} is kept off: blocked for everyone.")

    def _approve(self, options: dict[str, Any]) -> None:
        name, tools = options["name"], options["tools"]
        shown = self._shown(name, tools)
        if not shown:
            return
        bare = [key for key in shown if key not in _hashes(tools)]
        if bare and not options["as_they_are"]:
            raise errors.Refused(_way_out(name, bare))
        done = configured.approve(_actor(), name, shown, reason=options["reason"])
        carried = {new: old for old, new in done.carried}
        for key in done.keys:
            was = f" It has what {carried[key]} had." if key in carried else ""
            self.stdout.write(f"{key} is approved.{was}")
        for problem in done.problems:
            self.stderr.write(str(problem))

    def _shown(self, name: str, tools: list[str]) -> Mapping[str, str]:
        """Give the versions that were named, or all that wait. Raises errors.Stale for one that is not so any more."""
        found = {change.key: change.shown for change in configured.review(name).waiting}
        hashes = _hashes(tools)
        wanted = [word.partition("=")[0] for word in tools] or list(found)
        for key in wanted:
            if key not in found:
                raise errors.NotFound(f"tool of {name} that waits for a look", key, found)
            if not _digits(found[key]).startswith(hashes.get(key, "")):
                raise errors.Stale(key, hashes[key], _printed(found[key]))
        if not wanted:
            self.stdout.write(f"Nothing of {name} waits for a look.")
        return {key: found[key] for key in wanted}

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(line)


def _adding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what operators and loadouts call it")
    reached = parser.add_mutually_exclusive_group(required=True)
    reached.add_argument("--url", metavar="URL", help="its address, for Streamable HTTP")
    reached.add_argument(
        "--command",
        metavar="CMD",
        nargs=argparse.REMAINDER,
        help="what runs it, with arguments; it comes last, as all that follows belongs to it",
    )
    parser.add_argument(
        "--env", metavar="K=V", action="append", default=[], help="a variable for it; secrets as ${VAR}"
    )
    parser.add_argument(
        "--header", metavar="K=V", action="append", default=[], help="a header; secrets as ${VAR}"
    )
    parser.add_argument("--bearer", metavar="${VAR}", help="the token that it asks for, as a variable")
    parser.add_argument("--cwd", metavar="DIR", help="where its command runs")
    parser.add_argument(
        "--namespace", metavar="N", help="what its tools' names begin with; its name if not given"
    )
    parser.add_argument("--timeout", metavar="S", type=int, help="how many seconds it has for an answer; 30")
    parser.add_argument("--title", metavar="TEXT", default="", help="a name for people to read")
    parser.add_argument("--category", metavar="C", default="", help="the category of its tools")
    parser.add_argument("--trust", action="store_true", help="its new tools need no look")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for the audit log")


def _connection(options: dict[str, Any]) -> dict[str, Any]:
    command = options["command"] or []
    headers = _pairs("--header", options["header"])
    if options["bearer"]:
        headers["Authorization"] = f"Bearer {options['bearer']}"
    given = {
        "command": command[0] if command else None,
        "args": command[1:],
        "env": _pairs("--env", options["env"]),
        "cwd": options["cwd"],
        "url": options["url"],
        "headers": headers,
        "timeout": options["timeout"],
    }
    return {field: value for field, value in given.items() if value}


def _pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in given:
        name, is_pair, value = pair.partition("=")
        if not is_pair:
            raise CommandError(f"{option} {pair!r}: write NAME=VALUE.")
        found[name.strip()] = value
    return found


def _hashes(tools: Iterable[str]) -> dict[str, str]:
    """Give the hashes, by tool, of those words that have one."""
    found: dict[str, str] = {}
    for word in tools:
        key, has_hash, given = word.partition("=")
        if not has_hash:
            continue
        found[key] = _digits(given.lower())
        if not _HASH.fullmatch(found[key]):
            message = f"{word!r}: write TOOL=HASH, with {FEWEST} to 64 hex digits, as `mcp review` prints it."
            raise errors.Refused(message)
    return found


def _digits(version: str) -> str:
    return version.removeprefix("sha256:")


def _printed(version: str) -> str:
    return _digits(version)[:PRINTED]


def _way_out(name: str, bare: list[str]) -> str:
    return (
        f"Nothing is approved: {_named(tuple(bare))} may say something else by now than what you saw. "
        f"Look with `{conf.COMMAND} mcp review {name}`, and name the version that it prints: TOOL=HASH. "
        "Or take what is there now, unseen, with --as-they-are."
    )


def _actor() -> actors.Actor:
    return actors.Actor(name=getpass.getuser(), via="command")


def _rows() -> Iterator[tuple[str, ...]]:
    """Say of every server its name, namespace, state, number of tools, what waits and how it is reached."""
    yield "name", "namespace", "state", "tools", "to look at", "reached by"
    for server in configured.servers():
        plugin = server.plugin
        known = "not asked yet"
        if server.listing is not None:
            known = "not answering" if server.listing.error else "ready"
        state = "off" if not plugin.active else known if plugin.status == "ready" else plugin.status
        counts = ", ".join(f"{count} {kind}" for kind, count in server.waiting.items() if kind != "gone")
        yield plugin.name, plugin.namespace, state, str(server.tools), counts or "-", server.connection.shown


def _errors() -> Iterator[str]:
    """Say below the table why those that have failed did."""
    for server in configured.servers():
        if server.error:
            yield f"\n{server.plugin.name} has failed: {server.error}"
        elif server.listing is not None and server.listing.error:
            yield f"\n{server.plugin.name} did not answer a call, and the next one tries again: {server.listing.error}"


def _recorded(name: str, listed: upstreams.Answer, done: configured.Recorded) -> Iterator[str]:
    if done.error:
        yield f"{name}: failed. {done.error}"
        return
    server = f" ({listed.server}, protocol {listed.protocol})" if listed.server else ""
    yield f"{name}: {len(listed.tools)} tools{server}"
    counted = (
        (done.created, "new"),
        (done.held, "changed, and held until approved"),
        (done.retired, "gone, and retired"),
    )
    for keys, what in counted:
        if keys:
            yield f"  {len(keys)} {what}: {_named(keys)}"
    if done.unseen or done.held:
        yield f"  Look at them: {conf.COMMAND} mcp review {name}"


def _named(keys: tuple[str, ...], most: int = 5) -> str:
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(keys[:most]) + more


def _reviewed(review: reviews.Review) -> Iterator[str]:
    if not review.changes:
        yield f"All {review.same} tools of {review.plugin.name} are as approved."
        return
    for change in review.changes:
        was = f", was {change.previous}" if change.previous else ""
        tokens = f"{change.tokens_before} -> " if change.tokens_before else ""
        version = "" if change.kind == "gone" else f"={_printed(change.shown)}"
        yield f"{change.kind} {change.key}{version}{was} ({tokens}{change.tokens_after} tokens)"
        if change.kind == "new":
            yield from _new(change.tool)
        for difference in change.differences:
            yield f"  {difference.field}:"
            yield from (f"    {line}" for line in difference.lines)
        yield from (f"  ! {flag}" for flag in change.flags)
        if change.users:
            yield f"  used by {', '.join(change.users)}"
    yield f"{len(review.waiting)} to look at, {review.same} as approved."
    if review.waiting:
        yield f"Approve what you read here: {conf.COMMAND} mcp approve {review.plugin.name} TOOL=HASH ..."


def _new(tool: catalog.Tool) -> Iterator[str]:
    """Show all that a new tool says: any of it may reach a model."""
    for field, value in reviews.as_shown(tool).items():
        if field == "description":
            yield from (f"    {line}" for line in tool.description.splitlines())
            continue
        yield f"  {field}:"
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        yield from (f"    {line}" for line in text.splitlines())
