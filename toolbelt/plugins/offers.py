"""The offer of a plugin, and its validation against the plugins that are already registered.

An offer is read once, as a copy, so that the plugin's code cannot change it later. All problems are reported, not only
the first. A conflict between names says which plugins have the name.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import errors, keys, schema
from toolbelt.core.belts import fields
from toolbelt.plugins import contract, lifecycle

# The owner of each name, by (name scope, folded name). Tools and toolkits share a scope: they share tools_config.
Owners = Mapping[tuple[str, str], str]


class _Plugin(fields.Fields):
    name: fields.Name
    namespace: fields.Text | None = None
    title: fields.Text | None = None
    description: fields.Text | None = None
    category: fields.Text | None = None


class _Tool(fields.Fields):
    name: fields.Name
    title: fields.Text | None = None
    description: fields.Text | None = None
    category: fields.Text | None = None
    input_schema: fields.Json | None = None
    output_schema: fields.Json | None = None
    annotations: fields.Json | None = None
    default_on: bool | None = None


class _Toolkit(fields.Fields):
    key: fields.Name
    title: fields.Text | None = None
    description: fields.Text | None = None
    policy_when_off: fields.Text | None = None
    examples: fields.Text | None = None
    members: fields.Each[fields.Text] | None = None
    options: fields.Pairs[fields.Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools, toolkits and so on that a plugin offers. ``source`` is its origin: a module, or a line of a file."""

    name: str
    source: str
    namespace: str = ""
    title: str = ""
    description: str = ""
    category: str = ""
    tools: tuple[contract.ToolDefinition, ...] = ()
    toolkits: tuple[contract.CodeToolkit, ...] = ()

    @property
    def home(self) -> str:
        """The name under which its secrets and state are stored."""
        return self.namespace or self.name

    @property
    def owner(self) -> str:
        """The plugin and its source, for messages about names that are taken."""
        return f"the plugin {self.name!r} ({self.source})"

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield every name that belongs to this plugin, with its name scope."""
        yield "plugin", keys.fold(self.name)
        yield "namespace", keys.fold(self.home)
        yield from (("key", keys.fold(tool.name)) for tool in self.tools)
        yield from (("key", keys.fold(toolkit.key)) for toolkit in self.toolkits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """An offer and its problems: ``fatal`` ones concern the whole plugin; a tool with one is ``left_out``."""

    offer: Offer
    fatal: tuple[errors.Problem, ...] = ()
    left_out: tuple[errors.Problem, ...] = ()


def source_of(plugin: object) -> str:
    """Return where the plugin's code is."""
    return f"{type(plugin).__module__}:{type(plugin).__qualname__}"


def examine(plugin: contract.ToolPlugin, source: str, owners: Owners) -> Examined:
    """Read and check what the plugin offers. Its properties are foreign code: an exception in them is a problem."""
    where = type(plugin).__qualname__
    empty_offer = Offer(name=where, source=source)
    try:
        stated = {field: getattr(plugin, field) for field in _Plugin.model_fields}
        tools = [(tool, _stated(tool, _Tool)) for tool in plugin.tools]
        toolkits = [(toolkit, _stated(toolkit, _Toolkit)) for toolkit in plugin.toolkits]
    except Exception as error:
        message = f"What the plugin offers cannot be read: {lifecycle.described(error)}."
        return Examined(offer=empty_offer, fatal=(errors.Problem(path=where, message=message),))
    read, misfits = _read(_Plugin, stated, where)
    if misfits:
        return Examined(offer=empty_offer, fatal=tuple(misfits))
    offer = Offer(source=source, **read.given())
    claims = _Claims(offer, owners)
    fatal = list(_of_plugin(offer, claims))
    if fatal:
        # The names of its tools depend on the plugin's own: they are checked once that is valid.
        return Examined(offer=offer, fatal=tuple(fatal))
    left_out: list[errors.Problem] = []
    valid_tools = []
    for position, (tool, stated) in enumerate(tools):
        path = _path(offer, "tools", stated["name"], position)
        read, problems = _read(_Tool, stated, path, tool, contract.ToolDefinition)
        problems = problems or list(_of_tool(read, offer, claims, path))
        if not problems:
            valid_tools.append(contract.ToolDefinition(**{"description": "", **read.given()}))
        left_out += problems
    for position, (toolkit, stated) in enumerate(toolkits):
        path = _path(offer, "toolkits", stated["key"], position)
        read, problems = _read(_Toolkit, stated, path, toolkit, contract.CodeToolkit)
        fatal += problems or _of_toolkit(read, claims, path)
    offer = dataclasses.replace(
        offer, tools=tuple(valid_tools), toolkits=tuple(toolkit for toolkit, _ in toolkits)
    )
    return Examined(offer=offer, fatal=tuple(fatal), left_out=tuple(left_out))


def late_changes(plugin: contract.ToolPlugin, before: Offer) -> tuple[errors.Problem, ...]:
    """Return a problem if the plugin offers something else than before, as after an ``initialize`` that asks a server
    for its tools; nothing if what it offers cannot be read any more.
    """
    examined = examine(plugin, before.source, {})
    if examined.fatal:
        return ()
    after, problems = examined.offer, [*examined.left_out]
    offers: tuple[tuple[str, dict[str, object], dict[str, object]], ...] = (
        ("tools", {tool.name: tool for tool in after.tools}, {tool.name: tool for tool in before.tools}),
        # By their keys: two objects may be one toolkit.
        (
            "toolkits",
            {item.key: item.key for item in after.toolkits},
            {item.key: item.key for item in before.toolkits},
        ),
    )
    for section, offered, known in offers:
        changes = {
            "new": [name for name in offered if name not in known],
            "missing": [name for name in known if name not in offered],
            "changed": [name for name in known if name in offered and offered[name] != known[name]],
        }
        if any(changes.values()):
            words = "; ".join(f"{change}: {', '.join(names)}" for change, names in changes.items() if names)
            message = (
                f"After initialize(), {before.owner} offers other {section} ({words}). Only those from before count:"
                " state all of them before initialize()."
            )
            problems.append(errors.Problem(path=f"{before.name}.{section}", message=message))
    return tuple(problems)


class _Claims:
    """The names that are taken, while an offer claims its own."""

    def __init__(self, offer: Offer, owners: Owners) -> None:
        self._offer, self._owners = offer, owners
        self._own: set[tuple[str, str]] = set()

    def problem(self, scope: str, name: str, subject: str) -> str | None:
        """Claim the name. Return a problem if another plugin or this offer already has it."""
        at = scope, keys.fold(name)
        if at in self._own:
            return f"{subject} occurs twice in {self._offer.owner}: names that differ only in case count as equal."
        if at in self._owners:
            owner = self._owners[at]
            return f"{subject} of {self._offer.owner} is taken by {owner}: rename one of the two."
        self._own.add(at)
        return None


def _of_plugin(offer: Offer, claims: _Claims) -> Iterator[errors.Problem]:
    problems = [keys.name_problem(offer.name)]
    if offer.namespace:
        problems.append(keys.namespace_problem(offer.namespace))
    if offer.category:
        problems.append(keys.name_problem(offer.category))
    if not any(problems):
        problems.append(claims.problem("plugin", offer.name, f"The name {offer.name!r}"))
        problems.append(claims.problem("namespace", offer.home, f"The namespace {offer.home!r}"))
    yield from (errors.Problem(path=offer.name, message=message) for message in problems if message)


def _of_tool(tool: _Tool, offer: Offer, claims: _Claims, path: str) -> Iterator[errors.Problem]:
    if problem := _naming_problem(tool.name, offer):
        yield errors.Problem(path=path, message=f"{problem} {offer.owner} uses it.")
    elif problem := claims.problem("key", tool.name, repr(tool.name)):
        yield errors.Problem(path=path, message=problem)
    if tool.category and (problem := keys.name_problem(tool.category)):
        yield errors.Problem(path=f"{path}.category", message=problem)
    for field, written in (("input_schema", tool.input_schema), ("output_schema", tool.output_schema)):
        if written is not None and (problem := _schema_problem(schema.canonical(written))):
            message = f"A tool cannot have this schema: {problem}."
            yield errors.Problem(path=f"{path}.{field}", message=message)


@functools.lru_cache(maxsize=4096)
def _schema_problem(text: str) -> str | None:
    # Cached, because the meta-schema takes a millisecond and plugins are read again.
    return schema.problem(json.loads(text))


def _naming_problem(key: str, offer: Offer) -> str | None:
    if problem := keys.tool_key_problem(key):
        return problem
    if offer.namespace and not keys.in_namespace(key, offer.namespace):
        fitting = keys.fit(key, offer.namespace)
        return f"{key!r} is outside the namespace {offer.namespace!r}: call it {fitting!r}."
    if not offer.namespace and keys.SEPARATOR in key:
        return f"{key!r} is in a namespace, and its plugin has none: state the namespace, or name it without '__'."
    return None


def _of_toolkit(toolkit: _Toolkit, claims: _Claims, path: str) -> Iterator[errors.Problem]:
    problem = keys.toolkit_key_problem(toolkit.key) or claims.problem(
        "key", toolkit.key, f"The toolkit {toolkit.key!r}"
    )
    if problem:
        yield errors.Problem(path=path, message=problem)
    members = toolkit.members or ()
    for position, key in enumerate(members):
        if key is not None and (problem := keys.tool_key_problem(key)):
            yield errors.Problem(path=f"{path}.members[{position}]", message=problem)
    for key in toolkit.options or ():
        if key not in members:
            message = f"Options are for members, and {key!r} is not a member."
            yield errors.Problem(path=f"{path}.options.{key}", message=message)


def _stated(value: object, model: type[fields.Fields]) -> dict[str, Any]:
    return {field: getattr(value, field, None) for field in model.model_fields}


def _read(
    model: type[fields.Fields], stated: Any, path: str, value: object = None, form: type = object
) -> tuple[Any, list[errors.Problem]]:
    """Return what is stated, and the problems of its form; ``value``, which states it, must be of the type ``form``."""
    read, misfits = fields.read(model, stated)
    if not isinstance(value, form):
        noun = model.__name__.strip("_").lower()
        message = f"A {noun} is a {form.__name__}, not a {type(value).__name__}."
        return read, [errors.Problem(path=path, message=message)]
    return read, [
        errors.Problem(path=".".join(map(str, (path, *misfit.at))), message=misfit.message)
        for misfit in misfits
    ]


def _path(offer: Offer, section: str, name: object, position: int) -> str:
    suffix = f".{name}" if isinstance(name, str) and name.strip() else f"[{position}]"
    return f"{offer.name}.{section}{suffix}"
