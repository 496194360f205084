"""Belts as text, in YAML or JSON: written for small diffs, read strictly.

Ambiguous texts are rejected, such as those with a repeated key. All texts are limited (see
:mod:`toolbelt.core.text_limits`). Those from the network must not contain aliases, either.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import yaml

from toolbelt.core import errors, strict_json, text_limits

Form = Literal["json", "yaml"]

MAX_DEPTH = text_limits.MAX_DEPTH
# Scenarios contain belts.
_MAX_FILE_DEPTH = MAX_DEPTH + 8

# The C versions are ten times as fast for a large belt, and may be missing.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Besides its own errors, PyYAML raises many others for values that do not fit their tag: `!!bool x`, `2026-99-99`.
_UNREADABLE = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError)


_TAG = "tag:yaml.org,2002:"


class _List:
    """A list that is being read."""

    def __init__(self) -> None:
        self.value: list[Any] = []
        # The number of keys and items in it, with those of aliases written out.
        self.size = 1

    def take(self, value: Any, event: Any) -> None:
        """Add the next value."""
        self.value.append(value)

    def end(self) -> None:
        """Complete the list."""


class _Mapping:
    """A mapping that is being read: a key, its value, and so on."""

    def __init__(self) -> None:
        self.value: dict[Hashable, Any] = {}
        self.size = 1
        self.awaits_value = False
        self._written: set[str] = set()
        self._own: dict[Hashable, Any] = {}
        self._key: Any = None
        self._merges = False

    def begin(self, key: Any, event: Any, *, merges: bool) -> None:
        """Start a key; with ``merges``, its value is a mapping (or several) to merge."""
        if not merges:
            if event.value in self._written:
                raise _refused(f"the key {event.value!r} is repeated in one mapping", event)
            self._written.add(event.value)
        self._key, self._merges, self.awaits_value = key, merges, True

    def take(self, value: Any, event: Any) -> None:
        """Set the value of the current key."""
        self.awaits_value = False
        if not self._merges:
            self._own[self._key] = value
            return
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            raise _refused("only mappings can be merged", event)
        for mapping in reversed(mappings):
            self.value.update(mapping)

    def end(self) -> None:
        """Complete the mapping: its own keys override merged ones."""
        self.value.update(self._own)


class _Reader(_LOADER):  # type: ignore[misc,valid-type]
    """A reader that builds values from YAML events; PyYAML's own tree of nodes takes three times the memory.

    Rejects a key that is repeated in one mapping, and aliases that expand to too much.
    """

    def read(self) -> Any:
        """Return the value of the only document in the text; None for an empty text."""
        try:
            self.get_event()
            if self.check_event(yaml.StreamEndEvent):
                return None
            self.get_event()
            document = self._document()
            self.get_event()
            if not self.check_event(yaml.StreamEndEvent):
                raise _refused("another document starts here: a belt is a single document", self.get_event())
            return document
        finally:
            self.dispose()

    def _document(self) -> Any:
        anchored: dict[str, Any] = {}
        # The open collections, and the size of each anchored value.
        stack: list[_List | _Mapping] = []
        sizes: dict[str, int] = {}
        anchors: list[str | None] = []
        while True:
            event = self.get_event()
            top = stack[-1] if stack else None
            size = 1
            if isinstance(event, yaml.CollectionEndEvent) and top is not None:
                top.end()
                stack.pop()
                value: Any = top.value
                size = top.size
                if (anchor := anchors.pop()) is not None:
                    sizes[anchor] = size
            elif isinstance(top, _Mapping) and not top.awaits_value:
                if not isinstance(event, yaml.ScalarEvent):
                    raise _refused("a key must be text", event)
                merges = self._tag(event) == _TAG + "merge"
                key = event.value if merges else self._scalar(event)
                top.begin(key, event, merges=merges)
                if event.anchor is not None:
                    anchored[event.anchor], sizes[event.anchor] = key, 1
                continue
            elif isinstance(event, yaml.CollectionStartEvent):
                opened = self._opened(event)
                stack.append(opened)
                anchors.append(event.anchor)
                if len(stack) > _MAX_FILE_DEPTH:
                    raise _refused(f"it is nested more than {_MAX_FILE_DEPTH} levels deep", event)
                if event.anchor is not None:
                    anchored[event.anchor] = opened.value
                    sizes.pop(event.anchor, None)
                continue
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchored:
                    raise _refused(f"the alias {event.anchor!r} is not defined", event)
                if event.anchor not in sizes:
                    raise _refused(f"the alias {event.anchor!r} is inside the value that it names", event)
                value, size = anchored[event.anchor], sizes[event.anchor]
            else:
                value = self._scalar(event)
                if event.anchor is not None:
                    anchored[event.anchor], sizes[event.anchor] = value, 1
            if not stack:
                return value
            stack[-1].size += size
            if stack[-1].size > text_limits.MAX_EXPANDED:
                most = f"{text_limits.MAX_EXPANDED:,}"
                raise _refused(f"with its aliases written out, it has more than {most} keys and items", event)
            stack[-1].take(value, event)

    def _opened(self, event: Any) -> _List | _Mapping:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            raise _refused(f"could not determine a constructor for the tag {event.tag!r}", event)
        return _Mapping() if is_mapping else _List()

    def _scalar(self, event: Any) -> Any:
        tag = self._tag(event)
        if tag == _TAG + "str":
            return event.value
        if tag in (_TAG + "int", _TAG + "float") and len(event.value) > text_limits.MAX_DIGITS:
            raise _refused(f"a number has more than {text_limits.MAX_DIGITS:,} digits", event)
        value = self.construct_object(yaml.ScalarNode(tag, event.value, event.start_mark), deep=True)
        # PyYAML keeps them for aliases of nodes, which are not used here.
        self.constructed_objects.clear()
        return value

    def _tag(self, event: Any) -> str:
        if event.tag in (None, "!"):
            return str(self.resolve(yaml.ScalarNode, event.value, event.implicit))
        return str(event.tag)


class _Decisions(_DUMPER):  # type: ignore[misc,valid-type]
    """A writer of decisions: a line for each, so that a change of one is a change of one line."""

    def text(self, text: str) -> Any:
        """Return a text of several lines as these lines."""
        return self.represent_scalar(_TAG + "str", text, style="|" if "\n" in text else None)

    def listed(self, entry: _OneLine) -> Any:
        """Return an entry on a line of its own."""
        return self.represent_mapping(_TAG + "map", entry.items(), flow_style=True)


class _OneLine(dict[str, Any]):
    """What was decided about something that a source lists."""


_Decisions.add_representer(str, _Decisions.text)
_Decisions.add_representer(_OneLine, _Decisions.listed)


def write_decisions(document: Mapping[str, Any], form: Form) -> str:
    """Return a belt with decisions only as text with one decision a line."""
    if form == "json":
        return write(document, form)
    short = {
        section: [_OneLine(entry) if _is_short(entry) else entry for entry in entries]
        for section, entries in document.items()
    }
    return "\n".join(
        yaml.dump({section: entries}, Dumper=_Decisions, sort_keys=False, allow_unicode=True, width=10**6)
        for section, entries in short.items()
    )


def _is_short(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and "plugin" in entry
        and all(not isinstance(value, dict | list) and "\n" not in str(value) for value in entry.values())
    )


def write(document: Mapping[str, Any], form: Form) -> str:
    """Return a belt as text."""
    if form == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    text: str = yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=100)
    return text


def read(text: str, *, strictly: bool = False) -> Any:
    """Return the document of a belt's text, in YAML or JSON (which is YAML). ``strictly``: the text comes from the
    network.

    Raise errors.Invalid if the text cannot be read. Whether it is a valid belt is not checked here.
    """
    try:
        text_limits.check_size(text)
    except text_limits.LimitError as error:
        raise errors.Invalid.of(f"This cannot be read: {error}.") from error
    if text.lstrip()[:1] == "{":
        try:
            # Much smaller and faster than YAML's reader, which is used for error messages if this is not JSON.
            return strict_json.read_text(text, MAX_DEPTH)
        except strict_json.UnreadableError:
            pass
    try:
        if strictly:
            _check_limits(text)
        return _Reader(text).read()
    except (yaml.scanner.ScannerError, yaml.parser.ParserError) as error:
        raise errors.Invalid.of(f"This is not YAML: {_described(error)}.") from error
    except _UNREADABLE as error:
        raise errors.Invalid.of(f"This cannot be read: {_described(error)}.") from error


def _check_limits(text: str) -> None:
    """Raise if the text contains an alias or is nested too deeply; reads it as a stream, before values are built."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise _refused("aliases are not allowed: write out the value here", event)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _refused(f"it is nested more than {MAX_DEPTH} levels deep", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _refused(why: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.composer.ComposerError(None, None, why, event.start_mark)


def _described(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).rstrip(".")
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem
