"""What the models of conversations were told, as it was observed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from django.db import models as orm
from django.db.models import signals

from toolbelt import conf, models
from toolbelt.core import conversations
from toolbelt.store import clock

# The most rows that are read for a page.
MAX_ROWS = 5_000

Way = Literal["append", "words"]

# The line of MCP clients whose lists never change: they cannot begin again.
CONSTANT = "mcp/constant"


class Told(NamedTuple):
    """What a conversation was told at one time; ``parent`` is empty if it began then.

    ``root`` is the digest of its start. ``start`` is what that has, by name, if it began then and was not read from the
    database: ``tool fetch``, ``toolkit kb``.
    """

    agent: str
    session: str
    chain: str
    root: str
    parent: str
    line: str
    way: Way
    entry: int
    changes: Mapping[str, Any]
    tokens: int
    at: dt.datetime
    start: tuple[str, ...] = ()


# Its columns.
_COLUMNS = tuple(name for name in Told._fields if name != "start")


class Live(NamedTuple):
    """A conversation that asked lately: its session, empty if it named none, and how it is told of changes.

    ``chain`` is what it has received, and ``root`` its start.
    """

    agent: str
    session: str
    way: Way
    chain: str = ""
    root: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation and everything that it was told, the newest first."""

    session: str
    line: str
    way: str
    seen: dt.datetime
    told: tuple[Told, ...]


def connect() -> None:
    """Forget the conversations of every agent that is deleted: a new agent of its name starts without them."""
    signals.post_delete.connect(_agent_deleted, sender=models.Agent, dispatch_uid="toolbelt.conversations")


def add_all(told: Iterable[Told]) -> None:
    """Store what was told, or note that a conversation is still there; delete what no one has seen for long."""
    told = list(told)
    rows = {
        (each.agent, each.session, each.chain): models.Told(
            **{name: getattr(each, name) for name in _COLUMNS}, seen=each.at
        )
        for each in told
    }
    starts = {(each.agent, each.root): each.start for each in told if each.start}
    models.Start.objects.bulk_create(
        [
            models.Start(agent=agent, root=root, names=names)
            for (agent, root), names in sorted(starts.items())
        ],
        ignore_conflicts=True,
    )
    models.Told.objects.bulk_create(
        [row for _, row in sorted(rows.items())],
        update_conflicts=True,
        unique_fields=["agent", "session", "chain"],
        update_fields=["seen"],
    )
    prune()


def prune(age: dt.timedelta | None = None) -> int:
    """Delete the records of conversations that last asked longer ago than this, by default than the setting's days;
    return their number.
    """
    age = dt.timedelta(days=conf.CONVERSATIONS_DAYS) if age is None else age
    deleted, _ = models.Told.objects.filter(seen__lt=clock.now() - age).delete()
    if deleted:
        of_start = models.Told.objects.filter(agent=orm.OuterRef("agent"), root=orm.OuterRef("root"))
        models.Start.objects.filter(~orm.Exists(of_start)).delete()
    return deleted


def live(agents: Collection[str] | None, since: dt.datetime) -> list[Live]:
    """Return the conversations of these agents, or of all, that asked since then: for each session the latest way, and
    each that named no session. Uses one query.
    """
    rows = models.Told.objects.filter(seen__gte=since).order_by("seen")
    if agents is not None:
        rows = rows.filter(agent__in=agents)
    newest: dict[tuple[str, str, str], Live] = {}
    for agent, session, chain, root, parent, way, line in rows.values_list(
        "agent", "session", "chain", "root", "parent", "way", "line"
    ):
        if not session and parent:
            # It has moved on to this.
            newest.pop((agent, session, parent), None)
        newest[agent, session, "" if session else chain] = Live(
            agent, session, cast(Way, way), chain, root, line
        )
    return list(newest.values())


def holding(name: str, since: dt.datetime) -> list[Live]:
    """Return the conversations that asked since then and were ever told of this, or may have been because their start
    was not recorded: ``tool fetch``, ``toolkit kb``. Uses three queries.
    """
    found = [each for each in live(None, since) if each.line != CONSTANT]
    roots = {each.root for each in found}
    starts = models.Start.objects.filter(root__in=roots).values_list("agent", "root", "names")
    begun = {(agent, root) for agent, root, names in starts if name in names}
    later = models.Told.objects.filter(root__in=roots).exclude(parent="")
    told: set[tuple[str, str, str]] = set()
    before: dict[tuple[str, str], str] = {}
    for agent, session, chain, root, parent, changes in later.values_list(
        "agent", "session", "chain", "root", "parent", "changes"
    ):
        if not session:
            before[agent, chain] = parent
        if name in _names(changes):
            told.add((agent, session, root if session else chain))

    def is_told(each: Live) -> bool:
        if each.session:
            return (each.agent, each.session, each.root) in told
        chain, passed = each.chain, set[str]()
        while chain and chain not in passed:
            if (each.agent, "", chain) in told:
                return True
            passed.add(chain)
            chain = before.get((each.agent, chain), "")
        return False

    return [each for each in found if not each.root or (each.agent, each.root) in begun or is_told(each)]


def latest(agent: str, maximum: int) -> list[Conversation]:
    """Return the conversations that asked last, with what each was told. Uses two queries."""
    stored = models.Told.objects.filter(agent=agent)
    newest = stored.order_by("-seen", "-entry", "-id")[: 4 * maximum]
    found: dict[tuple[str, str], models.Told] = {}
    passed: set[str] = set()
    for row in newest:
        passed.add(row.parent)
        if row.chain not in passed or row.session:
            found.setdefault((row.session, "" if row.session else row.chain), row)
    chosen = list(found.values())[:maximum]
    # All of a session; of the others, all, because their chains may begin alike. The latest, if there are too many.
    rows = stored.filter(session__in={row.session for row in chosen}).order_by("-at")[:MAX_ROWS]
    by_chain = {
        (row.session, row.chain): row
        for row in sorted(rows, key=lambda row: (row.at, row.entry), reverse=True)
    }
    return [
        Conversation(
            session=row.session,
            line=row.line,
            way=row.way,
            seen=row.seen,
            told=_branch(row, by_chain)
            if not row.session
            else tuple(_value(one) for one in by_chain.values() if one.session == row.session),
        )
        for row in chosen
    ]


def _branch(row: models.Told, by_chain: Mapping[tuple[str, str], models.Told]) -> tuple[Told, ...]:
    """Return what led to this, the newest first."""
    branch = [row]
    while (before := by_chain.get((row.session, branch[-1].parent))) is not None and before not in branch:
        branch.append(before)
    return tuple(map(_value, branch))


def _value(row: models.Told) -> Told:
    return Told(**{name: getattr(row, name) for name in _COLUMNS})


def _names(changes: Mapping[str, Any]) -> frozenset[str]:
    """Return what was said, with its kind."""
    tools = (name for kind in ("added", "changed", "removed") for name in changes.get(kind, ()))
    return conversations.names(tools, changes.get("policy", ()), changes.get("loadable", ()))


def _agent_deleted(instance: models.Agent, **_: Any) -> None:
    models.Told.objects.filter(agent=instance.key).delete()
    models.Start.objects.filter(agent=instance.key).delete()
