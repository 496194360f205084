"""Conversion of the tools that upstream servers list.

Everything in a tool comes from the server: it is limited, fitted and cleaned, and the changes are reported. A tool that
cannot be imported is left out with a message, without affecting other tools.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.core import catalog, errors, keys, schema, strict_json, tool_versions
from toolbelt.core.imported import cleaning, details, flags, repairing, repairs

MAX_NAME_LENGTH = 200
MAX_TITLE_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 16_000
MAX_IN_SCHEMA_LENGTH = 4_000
# The maximum length of a name or value in an output schema; longer ones are prose.
MAX_IN_RESULT_LENGTH = 100
# In characters of canonical JSON. The largest of 484 real tools has 19,000.
MAX_SCHEMA_BYTES = 100_000
# How many repairs a note quotes.
MAX_SUMMARIZED = 3
_SCHEMAS = (repairing.INPUT, repairing.OUTPUT)
# What servers call the schema of arguments, the name in MCP first.
_SPELLINGS = (repairing.INPUT, "input_schema", "parameters")
# The annotations of MCP, beside the title. No others are imported.
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """The lists of a server, unchanged: each tool as MCP has it.

    ``non_tools`` are its prompts, resources and templates, by kind. A missing kind was not listed, and the list of
    one in ``truncated_kinds`` is incomplete. ``is_complete``: the list of tools is complete; ``problems`` describe what
    is missing. If the server could not be reached, ``error`` explains why, and nothing is known of its tools;
    ``sign_in_needed``: it wants OAuth, and no one is signed in. ``server`` is its own name, and ``instructions`` are
    those for models. ``again`` is what further unused connections listed at the same time
    (:mod:`toolbelt.core.imported.rewordings`).
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    non_tools: Mapping[catalog.Kind, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    truncated_kinds: frozenset[catalog.Kind] = frozenset()
    is_complete: bool = True
    protocol: str = ""
    server: str = ""
    problems: tuple[errors.Problem, ...] = ()
    error: str = ""
    sign_in_needed: bool = False
    stderr: str = ""
    instructions: str = ""
    again: tuple[ServerListing, ...] = ()
    _versions: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    def versions(
        self, name: str, namespace: str, key: str = "", description: str | None = None
    ) -> tuple[str, ...]:
        """Return the versions of the tool with this name (see :meth:`Definition.versions`); none if the server lists
        none that can be imported. ``key`` is that of the stored tool, if it is not the one that results from the name.
        With a ``description``, return those of the tool if it had this one.
        """

        def listed() -> Definition | str:
            named = (tool for tool in self.tools if tool.get("name") == name)
            converted = first_usable(definition(tool, namespace) for tool in named)
            if not key or isinstance(converted, str):
                return converted
            return dataclasses.replace(converted, key=key)

        return self.cached_versions(("tool", name, namespace, key), listed, description)

    def cached_versions(
        self, key: tuple[str, ...], make: Callable[[], Definition | str], description: str | None = None
    ) -> tuple[str, ...]:
        """Return the versions of the definition that ``make`` returns; none if that is an explanation.

        With a ``description``, that of the definition if it had this one. Cached, because every call checks whether the
        tool is still the approved one.
        """
        place = key if description is None else (*key, "described", description)
        if place not in self._versions:
            listed = make()
            if not isinstance(listed, str) and description is not None:
                listed = dataclasses.replace(listed, description=description)
            self._versions[place] = () if isinstance(listed, str) else listed.versions()
        return self._versions[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A listed tool, prompt and so on, in the form in which it is stored. ``name`` is the server's own name of it;
    ``changes`` are the changes to it, as sentences. ``repairs`` are those of its schemas; ``unrepaired_schema`` is its
    input schema as it was stored before schemas were repaired, if it is another and could be stored.
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
    repairs: repairs.Repairs = ()
    unrepaired_schema: Mapping[str, Any] | None = None

    @property
    def upstream_name(self) -> str:
        """Return the server's own name, if the key does not contain it."""
        if self.kind != "tool":
            return self.name
        return "" if self.name in (self.key, self.key.partition(keys.SEPARATOR)[2]) else self.name

    def version(self) -> str:
        """Return the hash that an approval refers to (see :func:`tool_versions.version`)."""
        return tool_versions.version(self.tool())

    def versions(self) -> tuple[str, ...]:
        """Return the version, and the one that the same listing had before its schema was repaired, if any: an approval
        of that is one of this definition.
        """
        unrepaired = self.unrepaired()
        return (self.version(), *(() if unrepaired is None else (tool_versions.version(unrepaired),)))

    def unrepaired(self) -> catalog.Tool | None:
        """Return the tool as it was described before its schema was repaired, or None."""
        if self.unrepaired_schema is None:
            return None
        return dataclasses.replace(self.tool(), input_schema=schema.canonical(self.unrepaired_schema))

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
    tools: Iterable[Mapping[str, Any]], namespace: str, source: str, *, repairs_schemas: bool = True
) -> tuple[list[Definition], list[errors.Problem]]:
    """Return definitions of the listed tools in their order, and problems; ``source`` names the server in messages.
    With ``repairs_schemas``, flaws of schemas are repaired where they can be, instead of being problems.

    Of tools that would have the same key, the only one whose name is unchanged gets it, and all others a key of their
    own, which does not depend on the order of the list.
    """
    read: dict[str, Definition] = {}
    problems: list[errors.Problem] = []
    subject = source[:1].upper() + source[1:]
    for position, listed in enumerate(tools):
        converted = definition(listed, namespace, repairs_schemas=repairs_schemas)
        if isinstance(converted, str):
            name = listed.get("name")
            shown_name = cleaning.line(name, MAX_NAME_LENGTH) if isinstance(name, str) else ""
            path = f"tools.{shown_name}" if shown_name else f"tools[{position}]"
            problems.append(errors.Problem(path=path, message=f"{converted} It was not imported."))
        elif converted.name in read:
            message = f"{subject} lists it twice: the first one was imported."
            problems.append(errors.Problem(path=f"tools.{converted.key}", message=message))
        else:
            read[converted.name] = converted
    claims = collections.Counter(keys.fold(converted.key) for converted in read.values())
    unchanged = collections.Counter(
        keys.fold(converted.key) for converted in read.values() if not converted.upstream_name
    )

    def has_own_key(converted: Definition) -> bool:
        folded = keys.fold(converted.key)
        return claims[folded] == 1 or (not converted.upstream_name and unchanged[folded] == 1)

    return [
        converted if has_own_key(converted) else with_own_key(converted, namespace)
        for converted in read.values()
    ], problems


def first_usable(converted: Iterable[Definition | str]) -> Definition | str:
    """Return the definition that is imported of several entries with the same name: the first; else an explanation."""
    return next((entry for entry in converted if isinstance(entry, Definition)), "It is not listed.")


def with_own_key(definition: Definition, namespace: str) -> Definition:
    """Return the definition of a tool with a key of its own, for one of several that would have the same."""
    return dataclasses.replace(definition, key=keys.fit(definition.name, namespace, is_marked=True))


def definition(
    listed: Mapping[str, Any], namespace: str, *, repairs_schemas: bool = True
) -> Definition | str:
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
    takes, returns = (
        _schemas(listed) if repairs_schemas else (_declared_schema(listed, name) for name in _SCHEMAS)
    )
    for stated, read in zip(_SCHEMAS, (takes, returns), strict=True):
        if read.problem:
            return f"Its {stated} cannot be used: {read.problem}."
    if takes.document is None:
        return "It has no inputSchema."
    whole = None if returns.document is None else cleaning.schema(returns.document, MAX_IN_SCHEMA_LENGTH)
    bare = None if whole is None else _without_prose(cleaning.bare_schema(whole))
    beside, left_out = details.read(listed, whole, bare)
    title = cleaning.line(stated_title(listed), MAX_TITLE_LENGTH)
    definition = Definition(
        key=key,
        name=name,
        # A title needs no approval, so one that gives instructions is left out.
        title="" if flags.flags(title) else title,
        description=cleaning.text(_text(listed.get("description")), MAX_DESCRIPTION_LENGTH),
        input_schema=cleaning.schema(takes.document, MAX_IN_SCHEMA_LENGTH),
        annotations=_hints(listed.get("annotations")),
        output_schema=bare,
        details=beside,
        repairs=(*takes.repairs, *returns.repairs),
        unrepaired_schema=takes.unrepaired and cleaning.schema(takes.unrepaired, MAX_IN_SCHEMA_LENGTH),
    )
    has_hidden = definition.input_schema != takes.document and cleaning.has_hidden(
        schema.canonical(takes.document)
    )
    return _with_changes(definition, listed, left_out, has_hidden=has_hidden, has_result=whole is not None)


def _with_changes(
    definition: Definition,
    listed: Mapping[str, Any],
    left_out: list[str],
    *,
    has_hidden: bool,
    has_result: bool,
) -> Definition:
    changes = [*left_out]
    described = _text(listed.get("description"))
    if definition.upstream_name:
        changes.append(f"Its server calls it {definition.name!r}, which is not a valid key: it was renamed.")
    if cleaning.has_hidden(described) or has_hidden:
        changes.append("Invisible characters were removed from its texts.")
    if len(described) > MAX_DESCRIPTION_LENGTH:
        changes.append(
            f"Its description has {len(described)} characters and was truncated to {MAX_DESCRIPTION_LENGTH}."
        )
    if unread := _unread_hints(listed.get("annotations")):
        changes.append(unread)
    if has_result and definition.output_schema is None:
        changes.append(
            "Its output schema contains text for models, and is left out until its details are approved."
        )
    if stated_title(listed) and not definition.title:
        changes.append("Its title contains instructions to models, and was left out.")
    if definition.repairs:
        changes.append(_summary(definition.repairs))
    return dataclasses.replace(definition, changes=tuple(changes))


def _is_task_only(execution: Any) -> bool:
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


def stated_title(listed: Mapping[str, Any]) -> str:
    """Return the listed title: the tool's own, or the one in the annotations, as in older revisions."""
    annotations = listed.get("annotations")
    among_hints = annotations.get("title") if isinstance(annotations, Mapping) else None
    return _text(listed.get("title")) or _text(among_hints)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A listed schema that was read: the ``document``, None if there is none or if there is a ``problem``;
    ``unrepaired``, if it is another that could be stored; and the repairs.
    """

    document: Any = None
    unrepaired: Any = None
    repairs: repairs.Repairs = ()
    problem: str = ""


def _schemas(listed: Mapping[str, Any]) -> tuple[_Read, _Read]:
    """Return the input and the output schema of a tool that a server lists, repaired. An output schema that cannot be
    used is left out, because a tool needs none.
    """
    stated = next((listed[name] for name in _SPELLINGS if listed.get(name) is not None), None)
    takes, returns = _repaired_schema(stated, repairing.INPUT), _Read()
    if (of_result := listed.get(repairing.OUTPUT)) is not None:
        returns = _repaired_schema(of_result, repairing.OUTPUT)
        if returns.problem:
            without = repairs.Repair(path=repairing.OUTPUT, code="result", found=returns.problem)
            returns = _Read(repairs=(without,))
    return takes, returns


def _repaired_schema(stated: Any, name: str) -> _Read:
    listed, text, problem = _stored(stated)
    if problem:
        return _Read(problem=problem)
    repaired = _repaired(text, name)
    if repaired.problem:
        return _Read(problem=repaired.problem)
    return _Read(
        document=json.loads(repaired.text) if repaired.text else listed,
        unrepaired=listed if repaired.is_other_reading else None,
        repairs=repaired.repairs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repaired:
    """The repair of a schema: its ``text``, empty if it is as it was listed. ``is_other_reading``: it could be stored
    as it was listed, too.
    """

    text: str = ""
    repairs: repairs.Repairs = ()
    is_other_reading: bool = False
    problem: str = ""


@functools.lru_cache(maxsize=4096)
def _repaired(text: str, name: str) -> _Repaired:
    # Cached, because the check takes a millisecond and servers are listed often.
    document = json.loads(text)
    if name == repairing.OUTPUT and not isinstance(document, dict):
        return _Repaired(problem="it is not an object")
    document, made = (repairing.arguments if name == repairing.INPUT else repairing.result)(document)
    problem = schema.problem(document) or ""
    if problem or not made:
        return _Repaired(problem=problem)
    listed = json.loads(text)
    is_other_reading = isinstance(listed, dict) and schema.problem(listed) is None
    return _Repaired(text=schema.canonical(document), repairs=made, is_other_reading=is_other_reading)


def _declared_schema(listed: Mapping[str, Any], name: str) -> _Read:
    """Return a schema that a program declares, which has to be valid."""
    stated = listed.get(name)
    if stated is None:
        return _Read()
    document, text, problem = _stored(stated)
    problem = problem or _cached_schema_problem(text) or ""
    return _Read(problem=problem) if problem else _Read(document=document)


def _stored(stated: Any) -> tuple[Any, str, str]:
    """Return a listed schema as it can be stored, its canonical JSON, and why it cannot be stored; empty if it can."""
    try:
        copied = strict_json.copied(stated)
    except ValueError:
        try:
            # Half a character in a description, of one that was cut, costs no tool.
            copied = strict_json.copied(cleaning.schema(stated, MAX_IN_SCHEMA_LENGTH))
        except ValueError as error:
            return None, "", str(error)
        except RecursionError:
            return None, "", f"it is nested deeper than {strict_json.MAX_DEPTH} levels"
    text = schema.canonical(copied)
    if len(text) > MAX_SCHEMA_BYTES:
        return None, "", f"it has {len(text)} characters; at most {MAX_SCHEMA_BYTES} are allowed"
    return copied, text, ""


@functools.lru_cache(maxsize=4096)
def _cached_schema_problem(text: str) -> str | None:
    return schema.problem(json.loads(text))


def _summary(made: repairs.Repairs) -> str:
    """Return a sentence about the repairs of a tool's schemas, with the first ones."""
    shown = sorted(made, key=lambda repair: not repair.is_finding)[:MAX_SUMMARIZED]
    more = f"; and {len(made) - len(shown)} more" if len(made) > len(shown) else ""
    return f"Its schemas were repaired: {'; '.join(repair.sentence for repair in shown)}{more}."


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
