"""Is this whole configuration sound? Reading, checking and writing of belts.

A belt is a whole configuration as one document, the form of export and import::

    {"categories": ["crm"], "plugins": [{"name": "git", "namespace": "git"}], "tools": [...], "toolkits": [...],
     "loadouts": [...], "agents": [...], "sub_apps": [...]}

Its entries are the one vocabulary of writes: what puts a single thing in place checks the same entry by the
same rules, beside what is :class:`Known`, and gets the same problems at the same paths. All problems are reported
at once, each with its path, in the order of the document. A path names the key of an entry, or its ``[index]``
where the key is blank: ``toolkits.dev.members[2]``, ``agents.ada.tools_config.run_sql``, ``loadouts[0].name``.
Everywhere in an entry ``null`` means: not given.
"""

from __future__ import annotations

from typing import Any

from toolbelt.core import agents, catalog, errors
from toolbelt.core.belts import (
    checking,
    comparing,
    known,
    profile_rules,
    reading,
    rebuilding,
    vocabulary,
    writing,
)

Belt = reading.Belt
Known = known.Known
KindName = vocabulary.KindName
KINDS = vocabulary.KINDS
Row = comparing.Row
Logged = rebuilding.Change
Rebuilt = rebuilding.Rebuilt
back = rebuilding.back
forward = rebuilding.forward
differences = comparing.differences
copied = comparing.copied


def check(document: Any) -> list[errors.Problem]:
    """Check a whole document: every problem, in its order."""
    return checking.document(document, reading.belt(document))


def load(
    document: Any,
    *,
    count_tokens: reading.CountTokens | None = None,
    lenient: bool = False,
    number: int = 0,
    stamp: str = "",
) -> Belt:
    """Read a whole document; raise :class:`errors.Invalid` with all its problems where it is not sound.

    ``count_tokens`` counts the tokens of a tool as it is sent. ``lenient`` takes any document at all, as if it had
    been written behind this check: what cannot be understood is passed over, and nothing is raised.
    """
    belt = reading.belt(document, count_tokens=count_tokens, number=number, stamp=stamp)
    problems = [] if lenient else checking.document(document, belt)
    if problems:
        raise errors.Invalid(problems)
    return belt


def dump(belt: Belt) -> dict[str, Any]:
    """Write a whole configuration: loading it gives the same again."""
    return writing.document(belt)


def check_entry(kind: KindName, written: Any, there: Known) -> list[errors.Problem]:
    """Check one entry that is to be written beside what is there, which may hold an older form of it."""
    return checking.entry(kind, written, there)


def check_conflicts(stored: catalog.Catalog, agent: agents.Agent) -> list[errors.Problem]:
    """Check an agent for options that differ, after a write that is not its own: of a toolkit, of a sub-app."""
    return list(profile_rules.conflicting(writing.entry("agent", agent), agent, stored))


def value(
    kind: KindName, written: Any, stored: catalog.Catalog, *, count_tokens: reading.CountTokens | None = None
) -> Any:
    """Give the value that a sound entry stands for: a ``catalog.Tool``, an ``agents.Agent``, a category's name.

    What it names is looked up in ``stored``, as that tells a toolkit from a tool in ``tools_config``.
    """
    given = reading.clean(kind, written)
    if given is None:
        path = checking.address(kind, written)
        raise errors.Invalid(
            [errors.Problem(path=path, message="An entry without a name stands for nothing.")]
        )
    match kind:
        case "category":
            return given
        case "plugin":
            return reading.plugin(given, stored.categories)
        case "tool":
            return reading.tool(given, stored.categories, count_tokens)
        case "toolkit":
            return reading.toolkit(given, stored.tools)
        case "loadout":
            return reading.loadout(given)
        case "agent":
            return reading.agent(given, stored)
        case "sub_app":
            return reading.sub_app(given, stored.tools)


def entry(kind: KindName, value: Any) -> Any:
    """Write one value as the entry that stands for it: the inverse of :func:`value`."""
    return writing.entry(kind, value)


def address(kind: KindName, written: Any) -> str:
    """Give the path of an entry that is written alone: what comes behind it in a problem's path is a field."""
    return checking.address(kind, written)
