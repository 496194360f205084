"""What of an upstream server's tools is an operator to look at, and what exactly would they approve?

Worked out from the rows alone: a tool that is new, one that is not what was approved, one that seems to be another one
under a new name, one that is gone. Each is shown with the hash of what is shown, and approving names that hash: nobody
approves what they did not see.
"""

from __future__ import annotations

import collections
import dataclasses
import difflib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.core import catalog, errors, schema
from toolbelt.plugins.upstream import flags
from toolbelt.store import references, snapshots, tokens

Kind = Literal["new", "changed", "renamed", "gone"]
KINDS: tuple[Kind, ...] = ("changed", "renamed", "new", "gone")
FIELDS = ("title", "description", "input_schema", "output_schema", "annotations")
# Comparing takes the square of the lines at worst, and a stranger wrote them: of more than that, what is not alike at
# either end is shown as removed and added.
MOST_LINES = 2_000
# How many lines that are alike are shown around those that are not.
AROUND = 3
# Of as many tools that say the very same, one is as likely as the next.
MOST_CANDIDATES = 20
_DOCUMENTS = frozenset({"input_schema", "output_schema", "annotations"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """One tool that there is to look at, and why; of a renamed one, what it was called before."""

    tool: catalog.Tool
    kind: Kind
    previous: str = ""

    @property
    def shown(self) -> str:
        """Give the hash of the version that there is to see."""
        return catalog.version(self.tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field that differs: as text before and after, and as the lines of a unified difference, without a head."""

    field: str
    old: str
    new: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One tool to look at. ``shown`` is the hash to approve it with.

    ``differences`` are against the version that was approved, of a renamed one against the tool called ``previous``
    before; of a new one there are none. ``users`` says who has it, or had it under its previous name.
    """

    kind: Kind
    tool: catalog.Tool
    shown: str
    previous: str = ""
    differences: tuple[Difference, ...] = ()
    flags: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    users: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Give the tool's key."""
        return self.tool.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All that is to be looked at in one server: what may cost agents something first, then by key."""

    plugin: catalog.Plugin
    changes: tuple[Change, ...]
    same: int

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """Give the changes of one kind."""
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def waiting(self) -> tuple[Change, ...]:
        """Give those that wait for a decision: all but what is gone."""
        return tuple(change for change in self.changes if change.kind != "gone")


def review(name: str, only: Collection[str] | None = None) -> Review:
    """Look at one upstream server's tools: at those keys alone, if any are given. Raises errors.NotFound."""
    stored = snapshots.catalog()
    plugin = find(name, stored)
    found = pending(name, stored)
    looked = [one for key, one in found.items() if only is None or key in only]
    users = references.of_tools([one.previous or one.tool.key for one in looked])
    renamed = {one.previous for one in found.values() if one.previous}
    of_plugin = stored.tools_of_plugin.get(name, ())
    return Review(
        plugin=plugin,
        changes=tuple(_change(one, stored, users) for one in looked),
        same=sum(key not in found and key not in renamed for key in of_plugin),
    )


def waiting() -> Mapping[str, Mapping[Kind, int]]:
    """Count, for every upstream server, the tools of each kind; a server where all is as approved has no count."""
    stored = snapshots.catalog()
    return {
        name: collections.Counter(one.kind for one in pending(name, stored).values())
        for name, plugin in stored.plugins.items()
        if plugin.upstream
    }


def pending(name: str, stored: catalog.Catalog) -> Mapping[str, Pending]:
    """Give what there is to look at in a server by key, in order: what may cost agents something comes first.

    It is worked out once for each state of the catalog.
    """
    kept: dict[str, Mapping[str, Pending]] = stored.derived.setdefault("pending", {})
    if name not in kept:
        tools = [stored.tools[key] for key in stored.tools_of_plugin.get(name, ())]
        kinds = {tool.key: kind for tool in tools if (kind := _kind_of(tool)) is not None}
        renamed = _renames(tools, kinds)
        found = [
            Pending(
                tool=stored.tools[key],
                kind="renamed" if key in renamed else kind,
                previous=renamed.get(key, ""),
            )
            for key, kind in kinds.items()
            if key not in renamed.values()
        ]
        found.sort(key=lambda one: (KINDS.index(one.kind), one.tool.key))
        kept[name] = {one.tool.key: one for one in found}
    return kept[name]


def find(name: str, stored: catalog.Catalog) -> catalog.Plugin:
    """Give the upstream server of this name. Raises errors.NotFound."""
    plugin = stored.plugins.get(name)
    if plugin is None or not plugin.upstream:
        known = [one.name for one in stored.plugins.values() if one.upstream]
        raise errors.NotFound("upstream server", name, known)
    return plugin


def _kind_of(tool: catalog.Tool) -> Kind | None:
    """Say what there is to see of a tool on its own; None: nothing."""
    if tool.retired:
        return "gone"
    if not tool.seen:
        return "new"
    return "changed" if catalog.is_changed(tool) else None


def _renames(tools: list[catalog.Tool], kinds: Mapping[str, Kind]) -> dict[str, str]:
    """Say which new tool seems to be which one that is gone: the same but for the name. By the new one's key."""
    gone: dict[tuple[str, str], list[str]] = {}
    for tool in tools:
        if kinds.get(tool.key) == "gone" and tool.seen:
            gone.setdefault((tool.description, tool.input_schema), []).append(tool.key)
    found: dict[str, str] = {}
    for tool in tools:
        candidates = gone.get((tool.description, tool.input_schema), [])
        # What says nothing of itself cannot be told from others.
        if kinds.get(tool.key) == "new" and tool.description and candidates:
            likely = candidates[:MOST_CANDIDATES]
            found[tool.key] = difflib.get_close_matches(tool.key, likely, n=1, cutoff=0.0)[0]
            candidates.remove(found[tool.key])
    return found


def as_shown(tool: catalog.Tool) -> dict[str, Any]:
    """Give what of a tool an approval is about, as it is kept while another version waits."""
    given = {
        "title": tool.title,
        "description": tool.description,
        "input_schema": schema.mapping(tool.input_schema, dict(schema.EMPTY)),
        "output_schema": schema.mapping(tool.output_schema, None),
        "annotations": schema.mapping(tool.annotations, {}),
    }
    return {field: value for field, value in given.items() if value}


def _change(one: Pending, stored: catalog.Catalog, users: Mapping[str, list[str]]) -> Change:
    tool, kind, previous = one.tool, one.kind, one.previous
    before: Mapping[str, Any] | None = None
    if previous:
        before = as_shown(stored.tools[previous])
    elif kind == "changed":
        before = schema.mapping(tool.approved_version, {})
    after = as_shown(tool)
    differences = tuple(_differences(before, after)) if before is not None else ()
    looks = flags.of_tool(
        tool.upstream_name or tool.key,
        tool.title,
        tool.description,
        after.get("input_schema"),
        after.get("output_schema"),
    )
    if kind == "changed" and before and _is_called_otherwise(tool, before):
        looks = (f"its server calls it otherwise now: “{tool.upstream_name or tool.key}”", *looks)
    return Change(
        kind=kind,
        tool=tool,
        shown=one.shown,
        previous=previous,
        differences=differences,
        flags=looks,
        tokens_before=_tokens(previous or tool.key, before),
        tokens_after=0 if kind == "gone" else tool.tokens,
        users=tuple(users.get(previous or tool.key, ())),
    )


def _is_called_otherwise(tool: catalog.Tool, before: Mapping[str, Any]) -> bool:
    """Say whether the name, too, is not the one that was approved: with the texts of then, it is another version."""
    then = dataclasses.replace(
        tool,
        description=_text("description", before.get("description")),
        input_schema=schema.canonical(before.get("input_schema", schema.EMPTY)),
    )
    return catalog.is_changed(then)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for field in FIELDS:
        old, new = _text(field, before.get(field)), _text(field, after.get(field))
        if old != new:
            yield Difference(field=field, old=old, new=new, lines=lines_of(old, new))


def lines_of(old: str, new: str) -> tuple[str, ...]:
    """Give the lines of the unified difference of two texts that differ, without a head: never none, and never cut."""
    were, are = old.splitlines(), new.splitlines()
    if were == are:
        were, are = ([repr(line) for line in text.splitlines(keepends=True)] for text in (old, new))
    head = _alike(were, are)
    tail = _alike(were[head:][::-1], are[head:][::-1])
    # Found in linear time, what is alike at both ends does not count towards what is compared.
    first = max(head - AROUND, 0)
    last = max(tail - AROUND, 0)
    were, are = were[first : len(were) - last], are[first : len(are) - last]
    return tuple(_hunks(were, are, first=first, head=head - first, tail=tail - last))


def _alike(were: Iterable[str], are: Iterable[str]) -> int:
    """Count the lines that two texts begin with alike."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(were, are, strict=False)))


def _hunks(were: list[str], are: list[str], *, first: int, head: int, tail: int) -> Iterator[str]:
    """Write the groups of lines that differ, with what is around them; ``first`` lines stand before all of these."""
    if max(len(were), len(are)) - head - tail > MOST_LINES:
        before, after = len(were) - tail, len(are) - tail
        yield _place(first, 0, len(were), 0, len(are))
        yield from (f" {line}" for line in were[:head])
        yield from (f"-{line}" for line in were[head:before])
        yield from (f"+{line}" for line in are[head:after])
        yield from (f" {line}" for line in were[before:])
        return
    for group in difflib.SequenceMatcher(None, were, are).get_grouped_opcodes(AROUND):
        yield _place(first, group[0][1], group[-1][2], group[0][3], group[-1][4])
        for tag, i, k, j, m in group:
            if tag == "equal":
                yield from (f" {line}" for line in were[i:k])
                continue
            yield from (f"-{line}" for line in were[i:k])
            yield from (f"+{line}" for line in are[j:m])


def _place(first: int, i: int, k: int, j: int, m: int) -> str:
    return f"@@ -{first + i + 1},{k - i} +{first + j + 1},{m - j} @@"


def _text(field: str, value: Any) -> str:
    if field not in _DOCUMENTS:
        return value if isinstance(value, str) else ""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) if value else ""


def _tokens(key: str, before: Mapping[str, Any] | None) -> int:
    if not before:
        return 0
    given = before.get("input_schema")
    return tokens.count(
        catalog.sent(
            key, _text("description", before.get("description")), given if given is not None else schema.EMPTY
        )
    )
