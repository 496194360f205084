"""Conversion of the tools that upstream servers list.

Everything in a tool comes from the server: it is limited, fitted and cleaned, and the changes are reported. A tool that
cannot be imported is left out with a message, without affecting other tools.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.core import catalog, errors, keys, schema, strict_json, tool_versions
from toolbelt.core.imported import cleaning, details, flags

MAX_NAME_LENGTH = 200
MAX_TITLE_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 16_000
MAX_IN_SCHEMA_LENGTH = 4_000
# The maximum length of a name or value in an output schema; longer ones are prose.
MAX_IN_RESULT_LENGTH = 100
# In characters of canonical JSON. The largest of 484 real tools has 19,000.
MAX_SCHEMA_BYTES = 100_000
# The annotations of MCP, beside the title. No others are imported.
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """The lists of a server, unchanged: each tool as MCP has it.

    ``non_tools`` are its prompts, resources and templates, by kind. A missing kind was not listed, and the list of
    one in ``truncated_kinds`` is incomplete. ``is_complete``: the list of tools is complete; ``problems`` describe what
    is missing. If the server could not be reached, ``error`` explains why, and nothing is known of its tools.
    ``server`` is its own name, and ``instructions`` are those for models. ``again`` is what further unused
    connections listed at the same time (:mod:`toolbelt.core.imported.rewordings`).
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    non_tools: Mapping[catalog.Kind, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    truncated_kinds: frozenset[catalog.Kind] = frozenset()
    is_complete: bool = True
    protocol: str = ""
    server: str = ""
    problems: tuple[errors.Problem, ...] = ()
    error: str = ""
    stderr: str = ""
    instructions: str = ""
    again: tuple[ServerListing, ...] = ()
    _versions: dict[tuple[str, ...], str] = field(default_factory=dict, compare=False, repr=False)

    def version(self, name: str, namespace: str, description: str | None = None) -> str:
        """Return the version of the tool with this name; empty if the server lists none that can be imported.

        With a ``description``, that of the tool if it had this one.
        """

        def listed() -> Definition | str:
            tool = next((tool for tool in self.tools if tool.get("name") == name), {})
            return definition(tool, namespace)

        return self.cached_version(("tool", name, namespace), listed, description)

    def cached_version(
        self, key: tuple[str, str, str], make: Callable[[], Definition | str], description: str | None = None
    ) -> str:
        """Return the version of the definition that ``make`` returns; empty if that is an explanation.

        With a ``description``, that of the definition if it had this one. Cached, because every call checks whether the
        tool is still the approved one.
        """
        place = key if description is None else (*key, description)
        if place not in self._versions:
            listed = make()
            if not isinstance(listed, str) and description is not None:
                listed = dataclasses.replace(listed, description=description)
            self._versions[place] = "" if isinstance(listed, str) else listed.version()
        return self._versions[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A listed tool, prompt and so on, in the form in which it is stored. ``name`` is the server's own name of it;
    ``changes`` are the changes to it, as sentences.
    """

    key: str
    name: str
    kind: catalog.Kind = "tool"
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: dict(schema.EMPTY))
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[str, ...] = ()

    @property
    def upstream_name(self) -> str:
        """Return the server's own name, if the key does not contain it."""
        if self.kind != "tool":
            return self.name
        return "" if self.name in (self.key, self.key.partition(keys.SEPARATOR)[2]) else self.name

    def version(self) -> str:
        """Return the hash that an approval refers to (see :func:`tool_versions.version`)."""
        return tool_versions.version(self.tool())

    def tool(self) -> catalog.Tool:
        """Return the tool that the definition describes, without what is stored of it."""
        return catalog.Tool(
            key=self.key,
            kind=self.kind,
            upstream_name=self.upstream_name,
            title=self.title,
            description=self.description,
            input_schema=schema.canonical(self.input_schema),
            details=self.details_text,
        )

    @property
    def details_text(self) -> str:
        """Return the details in the stored form."""
        return schema.canonical(self.details) if self.details else ""


def definitions(
    tools: Iterable[Mapping[str, Any]], namespace: str, source: str
) -> tuple[list[Definition], list[errors.Problem]]:
    """Return definitions of the listed tools in their order, and problems; ``source`` names the server in messages.

    If two tools would have the same key, the one whose name is unchanged gets it, otherwise the first.
    """
    read: list[Definition] = []
    problems: list[errors.Problem] = []
    subject = source[:1].upper() + source[1:]
    for position, listed in enumerate(tools):
        converted = definition(listed, namespace)
        if isinstance(converted, str):
            name = listed.get("name")
            shown_name = cleaning.line(name, MAX_NAME_LENGTH) if isinstance(name, str) else ""
            path = f"tools.{shown_name}" if shown_name else f"tools[{position}]"
            problems.append(errors.Problem(path=path, message=f"{converted} It was not imported."))
        else:
            read.append(converted)
    owners: dict[str, Definition] = {}
    for converted in sorted(read, key=lambda candidate: bool(candidate.upstream_name)):
        owners.setdefault(keys.fold(converted.key), converted)
    unique = []
    for converted in read:
        owner = owners[keys.fold(converted.key)]
        if owner is converted:
            unique.append(converted)
            continue
        message = (
            f"{subject} lists {converted.name!r} and {owner.name!r}, which would have the same key, {owner.key!r}:"
            f" {converted.name!r} was not imported."
        )
        problems.append(errors.Problem(path=f"tools.{converted.key}", message=message))
    return unique, problems


def definition(listed: Mapping[str, Any], namespace: str) -> Definition | str:
    """Return the definition of a listed tool, or a sentence that explains why it cannot be imported."""
    name = listed.get("name")
    if not isinstance(name, str) or not name.strip():
        return "It has no name."
    if len(name) > MAX_NAME_LENGTH:
        return f"Its name has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed."
    if cleaning.has_hidden(name):
        return "Its name contains invisible characters."
    key = keys.fit(name, namespace)
    if problem := keys.tool_key_problem(key):
        return problem
    if not namespace and keys.SEPARATOR in key:
        return f"{key!r} contains '__', but its server has no namespace: set one."
    if _is_task_only(listed.get("execution")):
        return (
            "It can only run as a task (execution.taskSupport is required), which Toolbelt does not support."
        )
    if listed.get("inputSchema") is None:
        return "It has no inputSchema."
    documents: dict[str, Any] = {}
    for field_name, stated in (("input_schema", "inputSchema"), ("output_schema", "outputSchema")):
        listed_schema = listed.get(stated)
        if listed_schema is None:
            continue
        if problem := _schema_problem(listed_schema):
            return f"Its {stated} cannot be used: {problem}."
        documents[field_name] = cleaning.schema(listed_schema, MAX_IN_SCHEMA_LENGTH)
    whole = documents.pop("output_schema", None)
    bare = None if whole is None else _without_prose(cleaning.bare_schema(whole))
    beside, left_out = details.read(listed, whole, bare)
    title = cleaning.line(stated_title(listed), MAX_TITLE_LENGTH)
    definition = Definition(
        key=key,
        name=name,
        # A title needs no approval, so one that gives instructions is left out.
        title="" if flags.flags(title) else title,
        description=cleaning.text(_text(listed.get("description")), MAX_DESCRIPTION_LENGTH),
        annotations=_hints(listed.get("annotations")),
        output_schema=bare,
        details=beside,
        **documents,
    )
    return _with_changes(definition, listed, left_out)


def _with_changes(definition: Definition, listed: Mapping[str, Any], left_out: list[str]) -> Definition:
    changes = [*left_out]
    described, schema_as_listed = _text(listed.get("description")), listed.get("inputSchema") or {}
    if definition.upstream_name:
        changes.append(f"Its server calls it {definition.name!r}, which is not a valid key: it was renamed.")
    if cleaning.has_hidden(described) or (
        definition.input_schema != schema_as_listed
        and cleaning.has_hidden(schema.canonical(schema_as_listed))
    ):
        changes.append("Invisible characters were removed from its texts.")
    if len(described) > MAX_DESCRIPTION_LENGTH:
        changes.append(
            f"Its description has {len(described)} characters and was truncated to {MAX_DESCRIPTION_LENGTH}."
        )
    if unread := _unread_hints(listed.get("annotations")):
        changes.append(unread)
    if listed.get("outputSchema") is not None and definition.output_schema is None:
        changes.append(
            "Its output schema contains text for models, and is left out until its details are approved."
        )
    if stated_title(listed) and not definition.title:
        changes.append("Its title contains instructions to models, and was left out.")
    return dataclasses.replace(definition, changes=tuple(changes))


def _is_task_only(execution: Any) -> bool:
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


def stated_title(listed: Mapping[str, Any]) -> str:
    """Return the listed title: the tool's own, or the one in the annotations, as in older revisions."""
    annotations = listed.get("annotations")
    among_hints = annotations.get("title") if isinstance(annotations, Mapping) else None
    return _text(listed.get("title")) or _text(among_hints)


def _schema_problem(listed_schema: Any) -> str | None:
    fitting = strict_json.copied_object(listed_schema)
    if fitting is None:
        return "it is not a JSON object that can be stored"
    text = schema.canonical(fitting)
    if len(text) > MAX_SCHEMA_BYTES:
        return f"it has {len(text)} characters; at most {MAX_SCHEMA_BYTES} are allowed"
    return _cached_schema_problem(text)


@functools.lru_cache(maxsize=4096)
def _cached_schema_problem(text: str) -> str | None:
    # Cached, because the check takes a millisecond and servers are listed often.
    return schema.problem(json.loads(text))


def _without_prose(output: dict[str, Any]) -> dict[str, Any] | None:
    """Return an output schema without prose, or None if its names or values give instructions: it needs no approval."""
    has_prose = any(
        len(text) > MAX_IN_RESULT_LENGTH or flags.flags(text) for text in set(flags.texts(output))
    )
    return None if has_prose else output


def _hints(annotations: Any) -> dict[str, bool]:
    """Return the hints that are booleans. They need no approval, so no text is imported."""
    if not isinstance(annotations, Mapping):
        return {}
    return {name: annotations[name] for name in HINTS if isinstance(annotations.get(name), bool)}


def _unread_hints(annotations: Any) -> str:
    """Return a sentence about hints that are not valid; empty if all are."""
    if annotations is not None and not isinstance(annotations, Mapping):
        return "Its annotations are not an object, and were ignored."
    wrong = [name for name in HINTS if not isinstance((annotations or {}).get(name), bool | None)]
    if not wrong:
        return ""
    return f"Of its hints, {' and '.join(wrong)} are neither true nor false, and were ignored."


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
