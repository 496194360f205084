"""The tools that an operator has to review, and what exactly an approval covers.

They come from upstream servers, or from agents' programs that declare them.

Computed from the stored rows: new tools, tools that differ from what was approved, tools that seem to be renamed, and
tools that are gone. Each is shown with a hash, and an approval names that hash, so that nothing is approved unseen. Its
flags are the findings that the review shows: suspicious texts, limits that were loosened, risks that rose.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt import formats
from toolbelt.control.servers import line_diffs
from toolbelt.core import catalog, declared_versions, errors, risks, schema, texts, tool_versions
from toolbelt.core.imported import cleaning, flags, repairs
from toolbelt.store import references, snapshots, token_counts

Kind = Literal["new", "changed", "renamed", "differs", "details", "hints", "gone"]
KINDS: tuple[Kind, ...] = ("changed", "renamed", "new", "hints", "differs", "details", "gone")
# Who runs the tools that are held to the versions that operators approved.
HELD: tuple[catalog.Runner, ...] = ("upstream", "client")
_NAMES: Mapping[catalog.Runner, str] = {
    "upstream": "upstream server",
    "client": "client plugin",
    "code": "plugin in code",
}
FIELDS = ("title", "description", "input_schema", "output_schema", "annotations", "details")
# How many tools with equal texts are compared by name; of more, each is as likely as the next.
MAX_CANDIDATES = 20
# How many versions' flags are cached, because their page is rendered again after each decision.
MAX_FLAGGED = 4096
DIFFERS = (
    "its description differs between the processes of its server: those with another one cannot be called"
)
# How much of a sentence about providers is shown; it may name a server's arguments.
MAX_OBJECTION_LENGTH = 300
_DOCUMENTS = frozenset({"input_schema", "output_schema", "annotations", "details"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewItem:
    """A tool that a review lists, and why; ``previous`` is the earlier key of a renamed one."""

    tool: catalog.Tool
    kind: Kind
    previous: str = ""

    @property
    def version_hash(self) -> str:
        """Return the hash of the version to review."""
        return tool_versions.shown_version(self.tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field that differs: as text before and after, and as the lines of a unified diff, without its header."""

    field: str
    old: str
    new: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One tool to review. ``shown`` is the hash to approve it with.

    ``differences`` are relative to the approved version, or for a renamed tool to the tool ``previous``; a new tool has
    none. ``repairs`` are those of its listed schemas that are no findings, in words; ``providers`` is what providers of
    models would refuse of it, and what they are not sent. ``users`` names who has it, or had it under its previous key.
    ``can_keep``: only its description differs.
    """

    kind: Kind
    tool: catalog.Tool
    version_hash: str
    previous: str = ""
    differences: tuple[Difference, ...] = ()
    flags: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    users: tuple[str, ...] = ()
    can_keep: bool = False

    @property
    def key(self) -> str:
        """Return the tool's key."""
        return self.tool.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Everything to review in one server: what may cost agents a tool first, then by key."""

    plugin: catalog.Plugin
    changes: tuple[Change, ...]
    same: int

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """Return the changes of one kind."""
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def to_review(self) -> tuple[Change, ...]:
        """Return the changes that await a decision: all except tools that are gone."""
        return tuple(change for change in self.changes if change.kind != "gone")


def review(name: str, only: Collection[str] | None = None) -> Review:
    """Return the review of a plugin's tools, or only of the keys in ``only``; raise errors.NotFound."""
    stored = snapshots.catalog()
    plugin = find(name, *HELD, stored=stored)
    items = review_items(name, stored)
    reviewed = [item for key, item in items.items() if only is None or key in only]
    renamed = {item.previous for item in items.values() if item.previous}
    of_plugin = stored.tools_of_plugin.get(name, ())
    return Review(
        plugin=plugin,
        changes=changes(reviewed, stored),
        same=sum(key not in items and key not in renamed for key in of_plugin),
    )


def changes(reviewed: Collection[ReviewItem], stored: catalog.Catalog) -> tuple[Change, ...]:
    """Return the changes of these tools, with their differences."""
    users = references.of_tools([item.previous or item.tool.key for item in reviewed])
    return tuple(_change(item, stored, users) for item in reviewed)


def review_items(name: str, stored: catalog.Catalog) -> Mapping[str, ReviewItem]:
    """Return the tools that the review of a plugin lists, by key, the riskiest first."""
    return _review_items(stored, name)


@catalog.derived
def _review_items(stored: catalog.Catalog, name: str) -> Mapping[str, ReviewItem]:
    tools = [stored.tools[key] for key in stored.tools_of_plugin.get(name, ())]
    kinds = {tool.key: kind for tool in tools if (kind := _kind_of(tool)) is not None}
    renamed = _renames(tools, kinds)
    items = [
        ReviewItem(
            tool=stored.tools[key],
            kind="renamed" if key in renamed else kind,
            previous=renamed.get(key, ""),
        )
        for key, kind in kinds.items()
        if key not in renamed.values()
    ]
    items.sort(key=lambda item: (KINDS.index(item.kind), item.tool.key))
    return {item.tool.key: item for item in items}


def to_review(name: str, stored: catalog.Catalog) -> list[ReviewItem]:
    """Return the tools of a plugin that await a decision. Older versions of tools in code are not stored, so each of
    them is new.
    """
    items = [item for item in review_items(name, stored).values() if item.kind != "gone"]
    if stored.plugins[name].runner != "code":
        return items
    return [dataclasses.replace(item, kind="new", previous="") for item in items]


def can_keep(item: ReviewItem, stored: catalog.Catalog) -> bool:
    """Return whether only the description of a server's tool changed, so that the approved one can be kept."""
    is_upstream = stored.runner(item.tool) == "upstream"
    return is_upstream and item.kind in ("changed", "differs") and tool_versions.is_reworded(item.tool)


def find(
    name: str, *runners: catalog.Runner, stored: catalog.Catalog | None = None, agent: str = ""
) -> catalog.Plugin:
    """Return the plugin with this name; raise errors.NotFound.

    With ``runners``, only a plugin whose tools one of them runs; with ``agent``, only one whose tools this agent may
    declare.
    """
    known = {
        plugin.name: plugin
        for plugin in (stored or snapshots.catalog()).plugins.values()
        if (not runners or plugin.runner in runners) and (not agent or agent in plugin.declared_by)
    }
    if name not in known:
        raise errors.NotFound(_NAMES[runners[0]] if runners else "plugin", name, known)
    return known[name]


def is_held(key: str) -> bool:
    """Return whether there is a tool with this key that no agent has before its review."""
    stored = snapshots.catalog()
    tool = stored.tools.get(key)
    if tool is None or tool.retired:
        return False
    plugin = stored.plugins.get(tool.plugin)
    is_seen = tool.seen or (plugin is not None and plugin.trusted)
    return not is_seen or tool_versions.is_changed(declared_versions.offered(tool))


def check_hashes(reviewed_hashes: Mapping[str, str], plugin: str = "") -> None:
    """Raise errors.Stale if a tool is no longer as it was shown, or errors.NotFound if there is none to review: in this
    plugin, if it is named.

    ``reviewed_hashes`` maps a tool to the hash that its change was shown with.
    """
    stored = snapshots.catalog()
    known = [plugin] if plugin else stored.plugins
    for key, reviewed_hash in reviewed_hashes.items():
        tool = stored.tools.get(key)
        if tool is None or tool.plugin not in known:
            word = f"tool of {plugin}" if plugin else "tool to review"
            raise errors.NotFound(word, key, stored.tools_of_plugin.get(plugin, ()))
        now = "retired" if tool.retired else tool_versions.shown_version(tool)
        if now != reviewed_hash:
            raise errors.Stale(key, reviewed_hash, now, by="source")


def _kind_of(tool: catalog.Tool) -> Kind | None:
    """Return the kind of review that a tool on its own needs, or None."""
    if tool.retired:
        return "gone"
    if tool_versions.is_rejected(tool):
        return None if tool.blocked else "new"
    if not tool.seen:
        return "new"
    if tool_versions.is_changed(tool):
        return "differs" if tool.varies and tool_versions.is_reworded(tool) else "changed"
    if risks.is_restated(tool):
        return "hints"
    return "details" if tool_versions.has_undecided_details(tool) else None


def _renames(tools: list[catalog.Tool], kinds: Mapping[str, Kind]) -> dict[str, str]:
    """Return the likely previous key of each new tool: that of a tool that is gone and equal except for its name."""
    gone: dict[tuple[str, str, str], list[str]] = {}
    for tool in tools:
        if kinds.get(tool.key) == "gone" and tool.seen:
            gone.setdefault(_texts_of(tool), []).append(tool.key)
    previous: dict[str, str] = {}
    for tool in tools:
        candidates = gone.get(_texts_of(tool), [])
        # Tools without a description cannot be distinguished.
        if kinds.get(tool.key) == "new" and tool.description and candidates:
            likely = candidates[:MAX_CANDIDATES]
            previous[tool.key] = difflib.get_close_matches(tool.key, likely, n=1, cutoff=0.0)[0]
            candidates.remove(previous[tool.key])
    return previous


def _texts_of(tool: catalog.Tool) -> tuple[str, str, str]:
    return tool.kind, tool.description, tool.input_schema if tool.kind == "tool" else tool.details


def as_shown(tool: catalog.Tool) -> dict[str, Any]:
    """Return the fields of a tool that an approval covers, as they are stored while another version awaits review."""
    fields = {
        "title": tool.title,
        "description": tool.description,
        "input_schema": schema.mapping(tool.input_schema, dict(schema.EMPTY))
        if tool.kind == "tool"
        else None,
        "output_schema": schema.mapping(tool.output_schema, None),
        "annotations": schema.mapping(tool.annotations, {}),
        "details": schema.mapping(tool.details, {}),
    }
    return {field: value for field, value in fields.items() if value}


def flags_of(item: ReviewItem, stored: catalog.Catalog) -> tuple[str, ...]:
    """Return the findings of a tool to review: in its texts, and what its change allows. Nothing, if it follows code of
    this installation.
    """
    tool = item.tool
    if stored.runner(tool) == "code":
        return ()
    raised = _flags(
        tool.upstream_name or tool.key,
        *(tool.title, tool.description),
        *(tool.input_schema if tool.kind == "tool" else "", tool.output_schema, tool.details),
    )
    differs = (DIFFERS,) if tool.varies else ()
    of_repairs = (repair.sentence for repair in repairs.read(tool.repairs) if repair.is_finding)
    raised = (*differs, *_flags_of_change(item, stored), *of_repairs, *raised)
    before = _before(item, stored)
    if item.kind == "changed" and before and _is_renamed(tool, before):
        return (f"its server renamed it to “{tool.upstream_name or tool.key}”", *raised)
    return raised


def objections(tool: catalog.Tool) -> tuple[str, ...]:
    """Return what providers of models would refuse of a tool, and what they are not sent, in words."""
    return _objections(tool.key, tool.description, tool.input_schema) if tool.kind == "tool" else ()


@functools.lru_cache(MAX_FLAGGED)
def _objections(key: str, description: str, takes: str) -> tuple[str, ...]:
    document = {
        "name": key,
        "description": description,
        "input_schema": schema.mapping(takes, dict(schema.EMPTY)),
    }
    return tuple(
        texts.cut(cleaning.escape_hidden(objection), MAX_OBJECTION_LENGTH)
        for objection in formats.objections(document)
    )


@catalog.derived
def findings(stored: catalog.Catalog) -> Mapping[str, tuple[str, ...]]:
    """Return the findings of each tool to review that has any, by key."""
    items = (item for name in stored.plugins for item in to_review(name, stored))
    return {item.tool.key: flags for item in items if (flags := flags_of(item, stored))}


def _flags_of_change(item: ReviewItem, stored: catalog.Catalog) -> tuple[str, ...]:
    tool = item.tool
    if item.kind in ("new", "gone") or tool.kind != "tool":
        return ()
    if item.kind == "changed" and not schema.mapping(tool.approved_version, {}):
        return ("only the hash of its approved version is stored: check all of it",)
    previous = stored.tools[item.previous] if item.previous else None
    approved = tool.approved_version if previous is None else schema.canonical(as_shown(previous))
    return _flags_between(approved, tool.input_schema, tool.annotations)


@functools.lru_cache(MAX_FLAGGED)
def _flags_between(approved: str, takes: str, annotations: str) -> tuple[str, ...]:
    before = schema.mapping(approved, {})
    if not before:
        # Only the details changed of a version of which only the hash is stored.
        return ()
    after = {
        "input_schema": schema.mapping(takes, dict(schema.EMPTY)),
        "annotations": schema.mapping(annotations, {}),
    }
    return flags.of_change(before, after)


@functools.lru_cache(MAX_FLAGGED)
def _flags(
    name: str, title: str, description: str, takes: str, returns: str, details: str
) -> tuple[str, ...]:
    return tuple(
        flags.of_tool(
            name,
            title,
            description,
            schema.mapping(takes, dict(schema.EMPTY)) if takes else None,
            schema.mapping(returns, None) or None,
            details=schema.mapping(details, {}) or None,
        )
    )


def _before(item: ReviewItem, stored: catalog.Catalog) -> Mapping[str, Any] | None:
    """Return the version that a tool is compared with; None for a new one."""
    if item.previous:
        return as_shown(stored.tools[item.previous])
    if item.kind in ("changed", "differs", "details", "hints"):
        return schema.mapping(item.tool.approved_version, {})
    return None


def _change(item: ReviewItem, stored: catalog.Catalog, users: Mapping[str, list[str]]) -> Change:
    tool, kind, previous = item.tool, item.kind, item.previous
    before = _before(item, stored)
    return Change(
        kind=kind,
        tool=tool,
        version_hash=item.version_hash,
        previous=previous,
        differences=tuple(_differences(before, as_shown(tool))) if before is not None else (),
        flags=flags_of(item, stored),
        repairs=tuple(repair.sentence for repair in repairs.read(tool.repairs) if not repair.is_finding),
        providers=() if kind == "gone" else objections(tool),
        tokens_before=_tokens(previous or tool.key, before) if tool.kind == "tool" else 0,
        tokens_after=0 if kind == "gone" else tool.tokens,
        users=tuple(users.get(previous or tool.key, ())),
        can_keep=can_keep(item, stored),
    )


def _is_renamed(tool: catalog.Tool, before: Mapping[str, Any]) -> bool:
    """Return whether the name changed as well: even with the approved texts, the version would be another one."""
    with_old_texts = dataclasses.replace(
        tool,
        description=_text("description", before.get("description")),
        input_schema=schema.canonical(before.get("input_schema", schema.EMPTY)),
    )
    if tool.kind != "tool":
        text = schema.canonical(before["details"]) if before.get("details") else ""
        with_old_texts = dataclasses.replace(
            with_old_texts, title=_text("title", before.get("title")), details=text
        )
    return tool_versions.is_changed(with_old_texts)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for field in FIELDS:
        old, new = _text(field, before.get(field)), _text(field, after.get(field))
        if old != new:
            yield Difference(field=field, old=old, new=new, lines=line_diffs.lines_of(old, new))


def _text(field: str, value: Any) -> str:
    if field not in _DOCUMENTS:
        return value if isinstance(value, str) else ""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) if value else ""


def _tokens(key: str, before: Mapping[str, Any] | None) -> int:
    if not before:
        return 0
    input_schema = before.get("input_schema")
    return token_counts.count(
        catalog.model_json(
            key,
            _text("description", before.get("description")),
            input_schema if input_schema is not None else schema.EMPTY,
        )
    )
