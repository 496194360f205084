"""What does a tool become that an upstream server lists?

Everything in it was written by a stranger: it is brought into bounds, made to fit and cleaned, and what had to be done
to it is said. A tool that cannot be had costs the server that tool, with a message, and nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.core import catalog, errors, keys, schema
from toolbelt.core.belts import shapes
from toolbelt.plugins.upstream import cleaning, flags

LONGEST_NAME = 200
LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 16_000
LONGEST_IN_SCHEMA = 4_000
# A name or a value in an output schema. What is longer is prose.
LONGEST_IN_RESULT = 100
# As canonical text, in characters. The largest of 484 real tools has 19,000.
LARGEST_SCHEMA = 100_000
# What MCP means by annotations, beside a title. Nothing else of them is taken.
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

_JSON = shapes.Json()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server said when it was asked for its tools, as it said it: MCP's own words for each tool.

    ``is_complete``: what it does not list it does not offer; ``problems`` tell what of a list is missing. ``error`` is
    set where it could not be asked; then nothing is known of its tools. ``server`` is what it calls itself.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    is_complete: bool = True
    protocol: str = ""
    server: str = ""
    problems: tuple[errors.Problem, ...] = ()
    error: str = ""
    stderr: str = ""
    _versions: dict[tuple[str, str], str] = field(default_factory=dict, compare=False, repr=False)

    def version(self, name: str, namespace: str) -> str:
        """Return the version of a tool that the server lists under this name; empty if it lists none that is sound.

        Kept, because every call asks whether the tool is still as it was approved.
        """
        if (name, namespace) not in self._versions:
            listed = next((tool for tool in self.tools if tool.get("name") == name), {})
            made = definition(listed, namespace)
            self._versions[name, namespace] = "" if isinstance(made, str) else made.version()
        return self._versions[name, namespace]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A listed tool, as it can be stored. ``name`` is what its server calls it; ``done`` what was done to it."""

    key: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: dict(schema.EMPTY))
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    done: tuple[str, ...] = ()

    @property
    def upstream_name(self) -> str:
        """Give what is kept beside the key: the server's own name, where the key does not tell it."""
        return "" if self.name in (self.key, self.key.partition(keys.SEPARATOR)[2]) else self.name

    def version(self) -> str:
        """Give the hash that an approval holds it to (see :func:`catalog.version`)."""
        return catalog.version(
            catalog.Tool(
                key=self.key,
                upstream_name=self.upstream_name,
                description=self.description,
                input_schema=schema.canonical(self.input_schema),
            )
        )


def definitions(
    tools: Iterable[Mapping[str, Any]], namespace: str, source: str
) -> tuple[list[Definition], list[errors.Problem]]:
    """Make definitions of what a server lists, in its order; ``source`` names the server in messages.

    Of two tools that would have one key, the one whose name needed no fitting has it, else the first.
    """
    read: list[Definition] = []
    problems: list[errors.Problem] = []
    subject = source[:1].upper() + source[1:]
    for position, listed in enumerate(tools):
        made = definition(listed, namespace)
        if isinstance(made, str):
            name = listed.get("name")
            shown = cleaning.line(name, LONGEST_NAME) if isinstance(name, str) else ""
            path = f"tools.{shown}" if shown else f"tools[{position}]"
            problems.append(errors.Problem(path=path, message=f"{made} {subject} goes without it."))
        else:
            read.append(made)
    owners: dict[str, Definition] = {}
    for made in sorted(read, key=lambda made: bool(made.upstream_name)):
        owners.setdefault(keys.fold(made.key), made)
    kept = []
    for made in read:
        owner = owners[keys.fold(made.key)]
        if owner is made:
            kept.append(made)
            continue
        message = (
            f"{subject} lists {made.name!r} and {owner.name!r}, which would both be called {owner.key!r}:"
            f" it goes without {made.name!r}."
        )
        problems.append(errors.Problem(path=f"tools.{made.key}", message=message))
    return kept, problems


def definition(listed: Mapping[str, Any], namespace: str) -> Definition | str:
    """Make a definition of one listed tool; a sentence where that cannot be."""
    name = listed.get("name")
    if not isinstance(name, str) or not name.strip():
        return "It has no name."
    if len(name) > LONGEST_NAME:
        return f"Its name has {len(name)} characters, and {LONGEST_NAME} are the most."
    if cleaning.has_hidden(name):
        return "Its name holds characters that cannot be seen."
    key = keys.fit(name, namespace)
    if problem := keys.tool_key_problem(key):
        return problem
    if not namespace and keys.SEPARATOR in key:
        return f"{key!r} lies in a namespace, and its server has none: give it one."
    if _is_task_only(listed.get("execution")):
        return "It runs as a task only (execution.taskSupport is required), and Toolbelt starts no tasks."
    if listed.get("inputSchema") is None:
        return "It has no inputSchema."
    documents: dict[str, Any] = {}
    for field_name, stated in (("input_schema", "inputSchema"), ("output_schema", "outputSchema")):
        given = listed.get(stated)
        if given is None:
            continue
        if problem := _schema_problem(given):
            return f"Its {stated} cannot be used: {problem}."
        documents[field_name] = (
            cleaning.schema(given, LONGEST_IN_SCHEMA)
            if field_name == "input_schema"
            else _wordless(cleaning.bare_schema(given))
        )
    title = cleaning.line(stated_title(listed), LONGEST_TITLE)
    found = Definition(
        key=key,
        name=name,
        # No approval holds a title: one that gives orders is not taken at all.
        title="" if flags.flags(title) else title,
        description=cleaning.text(_text(listed.get("description")), LONGEST_DESCRIPTION),
        annotations=_hints(listed.get("annotations")),
        **documents,
    )
    return _with_what_was_done(found, listed)


def _with_what_was_done(made: Definition, listed: Mapping[str, Any]) -> Definition:
    done = []
    described, schema_as_listed = _text(listed.get("description")), listed.get("inputSchema") or {}
    if made.upstream_name:
        done.append(f"Its server calls it {made.name!r}: the name was made to fit.")
    if cleaning.has_hidden(described) or (
        made.input_schema != schema_as_listed and cleaning.has_hidden(schema.canonical(schema_as_listed))
    ):
        done.append("Characters that cannot be seen were taken out of its texts.")
    if len(described) > LONGEST_DESCRIPTION:
        done.append(f"Its description has {len(described)} characters and was cut to {LONGEST_DESCRIPTION}.")
    if left_out := _unread_hints(listed.get("annotations")):
        done.append(left_out)
    if listed.get("outputSchema") is not None and made.output_schema is None:
        done.append("Its output schema speaks to models, and was left out.")
    if stated_title(listed) and not made.title:
        done.append("Its title speaks to models, and was left out.")
    return dataclasses.replace(made, done=tuple(done))


def _is_task_only(execution: Any) -> bool:
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


def stated_title(listed: Mapping[str, Any]) -> str:
    """Give the title as it is listed: a tool's own, else the one that older revisions keep among the hints."""
    annotations = listed.get("annotations")
    among_hints = annotations.get("title") if isinstance(annotations, Mapping) else None
    return _text(listed.get("title")) or _text(among_hints)


def _schema_problem(given: Any) -> str | None:
    fitting = _JSON.read(given)
    if fitting is None:
        return "it is no mapping that can be stored"
    text = schema.canonical(fitting)
    if len(text) > LARGEST_SCHEMA:
        return f"it has {len(text)} characters, and {LARGEST_SCHEMA} are the most"
    return _kept_schema_problem(text)


@functools.lru_cache(maxsize=4096)
def _kept_schema_problem(text: str) -> str | None:
    # Kept, because the meta-schema takes a millisecond and servers are asked again.
    return schema.problem(json.loads(text))


def _wordless(output: dict[str, Any]) -> dict[str, Any] | None:
    """Give what is left of an output schema, unless its very names and values speak: no approval holds them."""
    spoken = any(len(text) > LONGEST_IN_RESULT or flags.flags(text) for text in set(flags.texts(output)))
    return None if spoken else output


def _hints(given: Any) -> dict[str, bool]:
    """Give the hints that are true or false. No approval holds them, so no text gets through."""
    if not isinstance(given, Mapping):
        return {}
    return {name: given[name] for name in HINTS if isinstance(given.get(name), bool)}


def _unread_hints(given: Any) -> str:
    """Say which hints are stated and cannot be read; nothing where all can."""
    if given is not None and not isinstance(given, Mapping):
        return "Its annotations are no mapping, and were left out."
    wrong = [name for name in HINTS if not isinstance((given or {}).get(name), bool | None)]
    if not wrong:
        return ""
    return f"Of its hints, {' and '.join(wrong)} are neither true nor false, and were left out."


def _text(given: Any) -> str:
    return given if isinstance(given, str) else ""
