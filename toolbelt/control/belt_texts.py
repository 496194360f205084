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


class _Loader(_LOADER):  # type: ignore[misc,valid-type]
    """Refuses a key that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        known = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in known:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} stands twice in one mapping", key.start_mark
                    )
                known.add(key.value)
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


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
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (it is a safe one)
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
