"""How does a belt stand in a text? As YAML or JSON: written so that diffs are quiet, read so that nothing hides.

What one reader could take for another thing is refused: a key that stands twice. A text from the network is read
strictly, too: nothing in it may stand for more than is written there (aliases), or be nested without end.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import yaml

from toolbelt.core import errors, strict_json

Form = Literal["json", "yaml"]

# The deepest that JSON in a belt may be nested, and the levels that a belt itself has.
DEEPEST = 64 + 8

# The C ones read and write a large belt ten times as fast, and may be missing.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Beside its own errors, YAML's reader breaks in many ways on what does not fit its tag: `!!bool x`, `2026-99-99`.
_UNREADABLE = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError)


_TAG = "tag:yaml.org,2002:"


class _List:
    """A list that is being read."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def take(self, value: Any, event: Any) -> None:
        """Take the next value."""
        self.found.append(value)

    def end(self) -> None:
        """Be whole."""


class _Mapping:
    """A mapping that is being read: a key, its value, and so on."""

    def __init__(self) -> None:
        self.found: dict[Hashable, Any] = {}
        self.awaits_value = False
        self._written: set[str] = set()
        self._own: dict[Hashable, Any] = {}
        self._key: Any = None
        self._merges = False

    def begin(self, key: Any, event: Any, *, merges: bool) -> None:
        """Take a key; one that ``merges`` stands for the mappings that are its value."""
        if not merges:
            if event.value in self._written:
                raise _refused(f"the key {event.value!r} stands twice in one mapping", event)
            self._written.add(event.value)
        self._key, self._merges, self.awaits_value = key, merges, True

    def take(self, value: Any, event: Any) -> None:
        """Take the value of the key."""
        self.awaits_value = False
        if not self._merges:
            self._own[self._key] = value
            return
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            raise _refused("only mappings can be merged", event)
        for mapping in reversed(mappings):
            self.found.update(mapping)

    def end(self) -> None:
        """Be whole: what is written in it counts more than what is merged into it."""
        self.found.update(self._own)


class _Reader(_LOADER):  # type: ignore[misc,valid-type]
    """Makes values of YAML's events as they come: a tree of nodes, as YAML's own reader makes, takes thrice the memory.

    Refuses a key that stands twice in one mapping. However deep a text is nested, it can be read.
    """

    def read(self) -> Any:
        """Return the value of the one document in the text; None for an empty text."""
        try:
            self.get_event()
            if self.check_event(yaml.StreamEndEvent):
                return None
            self.get_event()
            found = self._document()
            self.get_event()
            if not self.check_event(yaml.StreamEndEvent):
                raise _refused("another document begins here: a belt is one", self.get_event())
            return found
        finally:
            self.dispose()

    def _document(self) -> Any:
        anchored: dict[str, Any] = {}
        open_ones: list[_List | _Mapping] = []
        while True:
            event = self.get_event()
            top = open_ones[-1] if open_ones else None
            if isinstance(event, yaml.CollectionEndEvent) and top is not None:
                top.end()
                open_ones.pop()
                value: Any = top.found
            elif isinstance(top, _Mapping) and not top.awaits_value:
                if not isinstance(event, yaml.ScalarEvent):
                    raise _refused("a key is a text", event)
                merges = self._tag(event) == _TAG + "merge"
                key = event.value if merges else self._scalar(event)
                top.begin(key, event, merges=merges)
                if event.anchor is not None:
                    anchored[event.anchor] = key
                continue
            elif isinstance(event, yaml.CollectionStartEvent):
                opened = self._opened(event)
                open_ones.append(opened)
                if event.anchor is not None:
                    anchored[event.anchor] = opened.found
                continue
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchored:
                    raise _refused(f"the alias {event.anchor!r} stands for nothing", event)
                value = anchored[event.anchor]
            else:
                value = self._scalar(event)
                if event.anchor is not None:
                    anchored[event.anchor] = value
            if not open_ones:
                return value
            open_ones[-1].take(value, event)

    def _opened(self, event: Any) -> _List | _Mapping:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            raise _refused(f"could not determine a constructor for the tag {event.tag!r}", event)
        return _Mapping() if is_mapping else _List()

    def _scalar(self, event: Any) -> Any:
        tag = self._tag(event)
        if tag == _TAG + "str":
            return event.value
        made = self.construct_object(yaml.ScalarNode(tag, event.value, event.start_mark), deep=True)
        # Kept for aliases of nodes, of which there are none.
        self.constructed_objects.clear()
        return made

    def _tag(self, event: Any) -> str:
        if event.tag in (None, "!"):
            return str(self.resolve(yaml.ScalarNode, event.value, event.implicit))
        return str(event.tag)


def write(document: Mapping[str, Any], form: Form) -> str:
    """Write a belt."""
    if form == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    text: str = yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=100)
    return text


def read(text: str, *, strictly: bool = False) -> Any:
    """Read what should be a belt, as YAML or JSON, which is YAML. ``strictly``: it comes from the network.

    Raises errors.Invalid where the text cannot be read. Whether it is a belt is not asked here.
    """
    if text.lstrip()[:1] == "{":
        try:
            # Much smaller and faster than YAML's reader, which is asked for what is wrong with what is no JSON.
            return strict_json.read_text(text, DEEPEST)
        except strict_json.Unreadable:
            pass
    try:
        if strictly:
            _refuse_what_grows(text)
        return _Reader(text).read()
    except _UNREADABLE as error:
        raise errors.Invalid(
            [errors.Problem(path="", message=f"This cannot be read: {_told(error)}.")]
        ) from error


def _refuse_what_grows(text: str) -> None:
    """Go through the text as a stream, where nothing is made of it yet."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise _refused("write it out here, as aliases are not taken", event)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _refused(f"it is nested more than {DEEPEST} levels deep", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _refused(why: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.composer.ComposerError(None, None, why, event.start_mark)


def _told(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).rstrip(".")
    return f"{what} (line {mark.line + 1}, column {mark.column + 1})" if mark else what
