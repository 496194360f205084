"""Reading, checking and writing of belts: whole configurations as documents.

A belt is the format of export and import::

    {"categories": ["crm"], "plugins": [{"name": "git", "namespace": "git"}], "tools": [...], "toolkits": [...],
     "loadouts": [...], "agents": [...], "sub_apps": [...], "gate_rules": [...]}

Its entries are also how single things are written: an entry is checked by the same rules, against a :class:`NameIndex`
of what exists, and gets the same problems at the same paths. All problems are reported at once, each with its path, in
the order of the document. A path names the key of an entry, or its ``[index]`` if the key is blank:
``toolkits.dev.members[2]``, ``agents.ada.tools_config.run_sql``, ``loadouts[0].name``. Everywhere in an entry, ``null``
means "not given".
"""

from __future__ import annotations

from typing import Any

from toolbelt.core import catalog, errors
from toolbelt.core.belts import (
    applying,
    checking,
    comparing,
    history,
    name_index,
    reading,
    secret_options,
    vocabulary,
    writing,
)

Belt = reading.Belt
NameIndex = name_index.NameIndex
KindName = vocabulary.KindName
KINDS = vocabulary.KINDS
SECTIONS = vocabulary.SECTIONS
naming = vocabulary.naming
Row = comparing.Row
History = history.History
LoggedChange = history.Change
switches = history.switches
POSITION = history.POSITION
changed = applying.changed
reordered = applying.reordered
check_entry = checking.entry
address = checking.address
entry = writing.entry
dump = writing.document
differences = comparing.differences
copy_rows = comparing.copy_rows
withheld = secret_options.withheld
restored = secret_options.restored
has_secret_option = secret_options.has_secret
has_withheld = secret_options.has_withheld


def check(document: Any, *, stored: Any = None) -> list[errors.Problem]:
    """Return every problem of a whole document that is to be saved, in its order.

    ``stored`` is the document of what is stored, with its secrets: those may stay, as connections may.
    """
    read = reading.sections(document)
    return checking.document(document, read, reading.belt(read), is_saved=True, stored=stored)


def load(
    document: Any,
    *,
    count_tokens: reading.CountTokens | None = None,
    lenient: bool = False,
    is_saved: bool = False,
    stored: Any = None,
    number: int = 0,
    stamp: str = "",
) -> Belt:
    """Read a whole document; raise :class:`errors.Invalid` with all its problems if it has any.

    ``count_tokens`` counts the tokens of a tool's JSON. ``lenient`` accepts any document, as if it had been written
    around this check: what cannot be understood is skipped, and nothing is raised. ``is_saved``: it is to be saved,
    which is stricter than resolving it (see :func:`toolbelt.core.loadouts.pattern_problem`); ``stored`` is then what
    :func:`check` explains.
    """
    read = reading.sections(document)
    belt = reading.belt(read, count_tokens=count_tokens, number=number, stamp=stamp)
    problems = [] if lenient else checking.document(document, read, belt, is_saved=is_saved, stored=stored)
    if problems:
        raise errors.Invalid(problems)
    return belt


def value(
    kind: KindName, written: Any, stored: catalog.Catalog, *, count_tokens: reading.CountTokens | None = None
) -> Any:
    """Return the value of a valid entry: a ``catalog.Tool``, an ``agents.Agent``, a category's name.

    Names in the entry are looked up in ``stored``, which tells toolkits from tools in ``tools_config``.
    """
    fields, _ = reading.entry(kind, written)
    if not reading.is_named(kind, fields):
        path = checking.address(kind, written)
        raise errors.Invalid([errors.Problem(path=path, message="An entry needs a name.")])
    match kind:
        case "category":
            return fields
        case "plugin":
            return reading.plugin(fields, stored.categories)
        case "tool":
            return reading.tool(fields, stored.categories, count_tokens)
        case "toolkit":
            return reading.toolkit(fields, stored.tools)
        case "loadout":
            return reading.loadout(fields)
        case "agent":
            return reading.agent(fields, stored)
        case "sub_app":
            return reading.sub_app(fields, stored.tools)
        case "gate_rule":
            return reading.gate_rule(fields)
