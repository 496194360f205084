"""The texts that ``manage.py mcp`` prints: tables, reviews, and the results of refreshes and approvals."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator

from toolbelt import conf
from toolbelt.control.servers import approvals, inbox
from toolbelt.control.servers import instructions as told
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.core import catalog, errors, risks, texts
from toolbelt.management import columns
from toolbelt.runtime.upstream import process_connections, server_lists

# The number of hex digits of a version's hash that are printed.
PRINTED_DIGITS = 12
# How many tools are listed by name.
MAX_NAMED = 5
# How much of a description is printed in a line.
MAX_SUMMARY = 80


def digits(version: str) -> str:
    """Return the hex digits of a version's hash, without its number and its algorithm."""
    return version.rpartition(":")[2]


def on_for(key: str, gains: Iterable[inbox.NewAccess]) -> str:
    """Return which agents have the tool, and which on request, as sentences; empty if none has it."""
    groups = (
        ("On for", tuple(gain.agent.key for gain in gains if key in gain.on)),
        ("On request for", tuple(gain.agent.key for gain in gains if key in gain.on_request)),
    )
    return "".join(f" {words}: {texts.listing(agents)}." for words, agents in groups if agents)


def not_granted(keys: Iterable[str], gains: Iterable[inbox.NewAccess]) -> Iterator[str]:
    """Yield how to turn on the tools that no agent has, not even on request."""
    without = tuple(key for key in keys if not on_for(key, gains))
    if without:
        one = len(without) == 1
        yield (
            f"No agent has {texts.listing(without)} yet. To turn {'it' if one else 'one of them'} on:"
            f" {conf.COMMAND} flip AGENT {without[0] if one else 'TOOL'} on"
        )


def name_taken(name: str) -> str:
    """Return the message for a server whose name exists already."""
    way_out = "choose another name"
    if any(server.plugin.name == name for server in configured.servers()):
        way_out = "to change its connection, add --replace before --url or --command; or choose another name"
    return f"{name!r} already exists: {way_out}."


def hash_required(name: str, keys: list[str]) -> str:
    """Return the message for an approval that does not name the reviewed version of these tools."""
    named = ", ".join(f"{key}=HASH" for key in keys) if len(keys) <= MAX_NAMED else "TOOL=HASH"
    return (
        f"Nothing was approved. Name the version that you reviewed: {named}. `{conf.COMMAND} mcp review {name}` prints"
        " the hash of each tool. To approve the current version without a review, add --as-they-are."
    )


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the name, namespace, state, number of tools, tools to review and transport of every server."""
    yield "name", "namespace", "state", "tools", "to review", "connections", "transport"
    for server in configured.servers():
        plugin = server.plugin
        state = "not refreshed yet" if server.state == "not-asked" else server.state.replace("-", " ")
        counts = ", ".join(f"{count} {kind}" for kind, count in server.to_review.items())
        shared_by = process_connections.sharing(plugin) or "session or shared"
        row = plugin.name, plugin.namespace, state, str(server.tools), counts or "-", shared_by
        yield (*row, server.connection.shown)


def failures() -> Iterator[str]:
    """Yield the errors of failed servers, which are printed below the table."""
    for server in configured.servers():
        if server.error:
            yield f"\n{server.plugin.name} has failed: {server.error}"
        elif server.listing is not None and server.listing.sign_in_needed:
            yield f"\n{server.plugin.name} needs a sign-in, on its page in the dashboard: {server.listing.error}"
        elif server.listing is not None and server.listing.error:
            yield f"\n{server.plugin.name} did not respond to a call; the next call tries again: {server.listing.error}"


def recorded(
    name: str, listed: server_lists.ServerListing, result: configured.RecordedTools
) -> Iterator[str]:
    """Yield the result of a refresh of one server."""
    if result.error:
        yield f"{name}: failed. {result.error}"
        return
    server = f" ({listed.server}, protocol {listed.protocol})" if listed.server else ""
    yield f"{name}: {texts.counted(len(listed.tools), 'tool')}{server}"
    groups = (
        (result.created, "new"),
        (result.rejected, "rejected, as decided before they were listed"),
        (result.held, "changed, unavailable until approved"),
        (result.still_available, "with new details or a higher risk, available"),
        (result.differing, "described differently by processes of the server, available as approved"),
        (result.retired, "removed by the server"),
    )
    for keys, description in groups:
        if keys:
            yield f"  {len(keys)} {description}: {texts.listing(keys)}"
    if result.unseen or result.held or result.still_available or result.differing:
        yield f"  Review them: {conf.COMMAND} mcp review {name}"


def reviewed(review: approvals.Review, only: Collection[str] = (), *, is_full: bool = False) -> Iterator[str]:
    """Yield the tools to review, or only some of them: a line each with their findings, or with all differences
    (``is_full``); then the commands that approve them. Raise errors.NotFound for one that is not to review.
    """
    name = review.plugin.name
    by_key = {change.key: change for change in review.changes}
    for key in only:
        if key not in by_key:
            raise errors.NotFound(f"tool of {name} to review", key, by_key)
    if not review.changes:
        yield f"All tools of {name} match their approved version."
        return
    changes = [change for change in review.changes if not only or change.key in only]
    yield from _full(changes) if is_full else _short(changes)
    yield f"{len(review.to_review)} to review, {review.same} unchanged."
    to_review = [change for change in review.to_review if change in changes]
    groups = (
        ("To approve these versions", [change for change in to_review if not change.flags]),
        ("To approve those with findings as well", [change for change in to_review if change.flags]),
    )
    if not is_full and (to_read := [change.key for change in to_review if change.kind != "gone"]):
        few = "" if len(to_read) > MAX_NAMED else " ".join(["", *to_read])
        yield f"To read everything: {conf.COMMAND} mcp review --full {name}{few}"
    for title, approvable in groups:
        if approvable:
            yield f"{title}: {conf.COMMAND} mcp approve {name} {' '.join(map(_with_hash, approvable))}"


def _with_hash(change: approvals.Change) -> str:
    return shlex.quote(f"{change.key}={digits(change.version_hash)[:PRINTED_DIGITS]}")


def _short(changes: Iterable[approvals.Change]) -> Iterator[str]:
    """Yield a line for each tool, with its findings below."""
    rows, flags = [], {}
    for change in changes:
        risk = risks.stated(change.tool)
        found = texts.counted(len(change.flags), "finding") if change.flags else "no findings"
        rows.append((change.kind, change.key, risk, found, _summary(change)))
        flags[len(rows)] = change.flags
    for number, line in enumerate(columns.lines(rows), start=1):
        yield line
        yield from (f"  ! {flag}" for flag in flags[number])


def _summary(change: approvals.Change) -> str:
    """Return in a line what a new tool does, or what differs of another one."""
    if change.kind == "new":
        return texts.cut(" ".join(change.tool.description.split()), MAX_SUMMARY)
    differs = ", ".join(difference.field for difference in change.differences)
    previous = f"was {change.previous}" if change.previous else ""
    return "; ".join(part for part in (previous, differs) if part)


def _full(changes: Iterable[approvals.Change]) -> Iterator[str]:
    """Yield each tool with its differences and findings."""
    for change in changes:
        was = f", was {change.previous}" if change.previous else ""
        tokens = f"{change.tokens_before} -> " if change.tokens_before else ""
        version = "" if change.kind == "gone" else f"={digits(change.version_hash)[:PRINTED_DIGITS]}"
        yield f"{change.kind} {change.key}{version}{was} ({tokens}{change.tokens_after} tokens)"
        if change.kind == "new":
            yield from _new(change.tool)
        for difference in change.differences:
            yield f"  {difference.field}:"
            yield from (f"    {line}" for line in difference.lines)
        yield from (f"  ! {flag}" for flag in change.flags)
        yield from (f"  repaired: {repair}" for repair in change.repairs)
        yield from (f"  providers: {objection}" for objection in change.providers)
        if change.users:
            yield f"  used by {', '.join(change.users)}"


def instructions(found: told.Instructions) -> Iterator[str]:
    """Yield what a server tells models, or how that differs from what was seen before."""
    name = found.plugin.name
    if found.state == "none":
        yield f"{name} states no instructions."
        return
    yield f"{found.state} {hash_of_instructions(found)[:PRINTED_DIGITS]}"
    yield from (f"  {line}" for line in found.lines or found.text.splitlines())
    yield from (f"  ! {flag}" for flag in found.flags)
    yield "They reach no model. To mark them as seen, name the hash; to use them as policy, add --use-in TOOLKIT."


def unseen_instructions(name: str) -> Iterator[str]:
    """Yield how to read the instructions of a server that no operator has seen."""
    for found in told.unseen(name):
        yield f"Its instructions are {found.state}: {conf.COMMAND} mcp instructions {name}"


def hash_of_instructions(found: told.Instructions) -> str:
    """Return the hex digits of the hash of a server's instructions; "none" if it no longer states any."""
    return digits(found.shown) or "none"


def _new(tool: catalog.Tool) -> Iterator[str]:
    """Yield everything that a new tool declares, since any of it may reach a model."""
    for field, value in approvals.as_shown(tool).items():
        if field == "description":
            yield from (f"    {line}" for line in tool.description.splitlines())
            continue
        yield f"  {field}:"
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        yield from (f"    {line}" for line in text.splitlines())
