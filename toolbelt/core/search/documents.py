"""Documents: what is indexed of a tool of the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import catalog, declared_versions, schema
from toolbelt.core.search import words

# Upstream servers send texts of any length; this much of each is indexed.
MAX_WORDS, MAX_SENTENCE = 400, 600
_SENTENCE = re.compile(r"(?<=[.!?])\s|[。！？\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The words of a tool, by field and in order. ``groups`` are the toolkits, or the plugin, that it belongs to.

    ``sentence`` is what a sentence model reads of it.
    """

    key: str
    name: tuple[str, ...]
    text: tuple[str, ...]
    first: tuple[str, ...]
    parameters: tuple[str, ...]
    parameter_text: tuple[str, ...]
    group_name: tuple[str, ...]
    group_text: tuple[str, ...]
    groups: tuple[str, ...]
    sentence: str


def of(stored: catalog.Catalog, tool: catalog.Tool) -> Document:
    """Return the document of a tool of the catalog."""
    tool = declared_versions.offered(tool)
    plugin = stored.plugins.get(tool.plugin)
    name = catalog.name_at_server(tool, plugin.namespace) if plugin else tool.key
    toolkits = stored.toolkits_of.get(tool.key, ())
    groups = [(toolkit.key, toolkit.title or toolkit.key, toolkit.description) for toolkit in toolkits]
    if not groups and plugin:
        groups = [(f"plugin {plugin.name}", plugin.title or plugin.name, plugin.description)]
    parameters, parameter_text = _parameters(tool.input_schema)
    title = tool.title if words.words_of(tool.title) != words.words_of(name) else ""
    return Document(
        key=tool.key,
        name=_words(name),
        text=_words(f"{title}. {tool.description}" if title else tool.description),
        first=_words(first_sentence(tool.description) or title),
        parameters=parameters,
        parameter_text=parameter_text,
        group_name=_words(" ".join(title for _, title, _ in groups)),
        group_text=_words(" ".join([*(text for _, _, text in groups), stored.category(tool)])),
        groups=tuple(key for key, _, _ in groups),
        sentence=f"{' '.join(_words(name))}. {title} {tool.description}"[:MAX_SENTENCE],
    )


def first_sentence(text: str) -> str:
    """Return the text up to the end of its first sentence."""
    return _SENTENCE.split(text.strip(), maxsplit=1)[0].strip()


def _words(text: str) -> tuple[str, ...]:
    return tuple(words.words_of(text)[:MAX_WORDS])


def _parameters(input_schema: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of the parameters' names, and those of their descriptions."""
    names: list[str] = []
    texts: list[str] = []
    for name, description in _described(schema.mapping(input_schema, schema.EMPTY)):
        names += words.words_of(name)
        texts += words.words_of(description)
    return tuple(names[:MAX_WORDS]), tuple(texts[:MAX_WORDS])


def _described(input_schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    properties = input_schema.get("properties")
    for name, definition in properties.items() if isinstance(properties, dict) else ():
        description = definition.get("description") if isinstance(definition, dict) else None
        yield name, description if isinstance(description, str) else ""
