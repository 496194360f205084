"""Values that a changed schema accepts and its earlier version refused: limits that were removed or loosened.

Both versions are followed side by side, through references, properties, items and alternatives. Schemas come from
servers, so the work is bounded by MAX_STEPS, whatever they contain; a comparison that is not finished says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolbelt.core import schema_drafts, texts
from toolbelt.core.schema import constraints, forms, validator, versions

# About 0.1 s in the worst case. Of 484 real tools, none takes more than 300.
MAX_STEPS = 5_000
# How many findings of one tool are listed.
MAX_LISTED = 20
MAX_SHOWN_LENGTH, MAX_PATH_LENGTH = 40, 80
UNFINISHED = "the schema is too large or too nested to compare: check all of its limits"

# Conditions that are compared as a whole: any change of them may allow more.
_WHOLE = (
    *("not", "if", "then", "else", "format", "contains", "minContains", "maxContains", "patternProperties"),
    *("propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"),
)

_KINDS: Mapping[str, str] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}


class _Finding(NamedTuple):
    """A difference at a path. ``is_type``: only the type changed."""

    text: str
    path: tuple[str, ...] = ()
    is_type: bool = False


def of(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return sentences about values that ``after`` accepts and ``before`` refused: at most MAX_LISTED, and a count."""
    try:
        comparison = _Comparison(schema_drafts.current(before), schema_drafts.current(after))
        sentences = list(dict.fromkeys(_sentence(finding) for finding in comparison.run()))
    except Exception:
        # Whatever the error is (numbers too large for arithmetic, for example), the schemas cannot be compared.
        return (UNFINISHED,)
    more = len(sentences) - MAX_LISTED
    if more > 0:
        sentences = [*sentences[:MAX_LISTED], "more limits were removed or loosened: read the difference"]
    return (*sentences, *(() if comparison.work.is_left else (UNFINISHED,)))


class _Comparison:
    """Compares two versions of a schema, each part of them once."""

    def __init__(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        self.work = versions.Work(MAX_STEPS)
        self._before, self._after = versions.Version(before, self.work), versions.Version(after, self.work)
        self._findings: dict[tuple[tuple[int, ...], tuple[int, ...]], list[_Finding]] = {}
        # Keeps the compared schemas alive, because their ids must not be reused for other objects.
        self._referenced: list[constraints.Schemas] = []

    def run(self) -> list[_Finding]:
        """Return the findings, path by path."""
        before, after = self._before.document, self._after.document
        findings = self._compare((before,), (after,), 0)
        for keyword in ("$defs", "definitions"):
            olds, news = before.get(keyword), after.get(keyword)
            if isinstance(olds, Mapping) and isinstance(news, Mapping):
                for name in olds:
                    if name in news and id(olds[name]) not in self._before.reached:
                        inner = self._compare((olds[name],), (news[name],), 1)
                        findings = findings + _under(f"{keyword}.{name}", inner)
        return findings

    def _compare(
        self, befores: constraints.Schemas, afters: constraints.Schemas, depth: int
    ) -> list[_Finding]:
        """Return findings about values that ``afters`` accept together and ``befores`` refused."""
        if depth > versions.MAX_DEPTH:
            self.work.end()
        if not self.work.take():
            return []
        befores = tuple(map(self._before.target, befores))
        afters = tuple(map(self._after.target, afters))
        key = tuple(map(id, befores)), tuple(map(id, afters))
        if key not in self._findings:
            # In a circle, what is reached again is reported where it was reached first.
            self._findings[key] = []
            self._referenced += [befores, afters]
            self._findings[key] = self._differences(befores, afters, depth)[: MAX_LISTED + 1]
        return self._findings[key]

    def _differences(
        self, befores: constraints.Schemas, afters: constraints.Schemas, depth: int
    ) -> list[_Finding]:
        olds, news = self._before.alternatives(befores), self._after.alternatives(afters)
        findings: list[_Finding] = []
        for position, new in enumerate(news):
            best: list[_Finding] | None = None
            for old in _likeliest(olds, new, position):
                relaxed = list(itertools.islice(self._relaxed(old, new, depth), MAX_LISTED + 1))
                best = relaxed if best is None or len(relaxed) < len(best) else best
                if not best or not self.work.take():
                    break
            findings += best or []
        return findings

    def _relaxed(self, old: constraints.Parts, new: constraints.Parts, depth: int) -> Iterator[_Finding]:
        """Yield what one alternative accepts that the other refused."""
        if versions.NOTHING in new:
            return
        if versions.NOTHING in old:
            yield _Finding("may now be given (it was not allowed)")
            return
        self.work.take(_steps(old) + _steps(new))
        yield from self._relaxed_conditions(old, new)
        listed, listed_now = constraints.values(old), constraints.values(new)
        if listed is not None and any("enum" in part or "const" in part for part in old):
            yield from _relaxed_values(old, listed, listed_now)
            return
        had, allowed = constraints.types(old), constraints.types(new)
        # Arguments are always an object.
        if depth and allowed - had:
            yield _Finding(_more_types(had, allowed), is_type=True)
        both = allowed & had
        yield from _relaxed_bounds(old, new, both)
        if "string" in both:
            yield from _relaxed_patterns(old, new, listed_now)
        if "array" in both:
            yield from self._relaxed_items(old, new, depth)
        if "object" in both:
            yield from self._relaxed_properties(old, new, depth)

    def _relaxed_conditions(self, old: constraints.Parts, new: constraints.Parts) -> Iterator[_Finding]:
        for keyword in _WHOLE:
            stated = {versions.text(part[keyword], self.work) for part in new if keyword in part}
            for part in old:
                if keyword in part and versions.text(part[keyword], self.work) not in stated:
                    yield _Finding(
                        f"is limited differently by {keyword}, and may accept more"
                        if stated
                        else f"is no longer limited by {keyword} ({keyword} removed)"
                    )
        if (
            any("contains" in part for part in old)
            and constraints.may_contain_none(new)
            and not constraints.may_contain_none(old)
        ):
            yield _Finding("no longer has to contain certain items (minContains is 0)")
        stated = {part[versions.UNREADABLE] for part in new if versions.UNREADABLE in part}
        if {part[versions.UNREADABLE] for part in old if versions.UNREADABLE in part} - stated:
            yield _Finding("may accept more: a reference or its alternatives changed, and cannot be compared")
        for number in constraints.numbers(old, "multipleOf"):
            if not any(now % number == 0 for now in constraints.numbers(new, "multipleOf")):
                yield _Finding(f"no longer has to be a multiple of {_short(forms.canonical(number))}")

    def _relaxed_items(
        self, old: constraints.Parts, new: constraints.Parts, depth: int
    ) -> Iterator[_Finding]:
        if any(part.get("uniqueItems") is True for part in old) and not any(
            part.get("uniqueItems") is True for part in new
        ):
            yield _Finding("may now contain equal items (uniqueItems removed)")
        prefixes = [part["prefixItems"] for part in (*old, *new) if isinstance(part.get("prefixItems"), list)]
        for position in range(max(map(len, prefixes), default=0)):
            if not self.work.take():
                return
            inner = self._compare(constraints.item(old, position), constraints.item(new, position), depth + 1)
            yield from _under(f"[{position}]", inner)
        if further := constraints.item(old, None):
            yield from _under("[]", self._compare(further, constraints.item(new, None), depth + 1))

    def _relaxed_properties(
        self, old: constraints.Parts, new: constraints.Parts, depth: int
    ) -> Iterator[_Finding]:
        properties, now = constraints.properties(old), constraints.properties(new)
        needed, needs = constraints.required(old), frozenset(constraints.required(new))
        for name in needed:
            if name not in needs:
                gone = "" if name in now else " (it is no longer listed)"
                yield _Finding(f"is no longer required{gone}", (name,))
        is_open = not constraints.is_closed(new)
        if constraints.is_closed(old) and is_open:
            yield _Finding(
                "may now contain names that are not listed (additionalProperties is no longer false)"
            )
        others, others_now = constraints.additional(old), constraints.additional(new)
        patterns = constraints.name_patterns(new) - constraints.name_patterns(old)
        if patterns and (constraints.is_closed(old) or others):
            listed = _listing(sorted(patterns))
            yield _Finding(f"may now contain names that match {listed} (patternProperties)")
        for name, schemas in properties.items():
            if not self.work.take():
                return
            if name in now:
                yield from _under(name, self._compare(schemas, now[name], depth + 1))
            elif is_open:
                # Without its limits, not only with another type: a server ignores most of what it does not list.
                inner = self._compare(schemas, others_now, depth + 1)
                yield from _under(name, [finding for finding in inner if not finding.is_type])
        if others:
            for name in [name for name in now if name not in properties]:
                yield from _under(name, self._compare(others, now[name], depth + 1))
            if is_open:
                yield from _under("*", self._compare(others, others_now, depth + 1))


def _likeliest(
    olds: Sequence[constraints.Parts], new: constraints.Parts, position: int
) -> list[constraints.Parts]:
    """Return the alternatives, the one first that the new one most likely was: of the same type, at the same place."""
    types = constraints.types(new)
    indexes = range(len(olds))
    ranked = sorted(
        indexes, key=lambda index: (constraints.types(olds[index]) != types, abs(index - position))
    )
    return [olds[index] for index in ranked]


def _more_types(had: frozenset[str], allowed: frozenset[str]) -> str:
    was = " or ".join(sorted(_named(had)))
    if allowed == constraints.TYPES:
        return f"may now be of any type (type {was} removed)"
    more = _named(allowed - had)
    return f"may now also be {' or '.join(_KINDS[name] for name in sorted(more))} (it had the type {was})"


def _named(types: Iterable[str]) -> set[str]:
    names = set(types)
    return names - {"integer"} if "number" in names else names


def _relaxed_values(
    old: constraints.Parts, listed: Mapping[str, Any], now: Mapping[str, Any] | None
) -> Iterator[_Finding]:
    if now is None:
        keyword = "const" if any("const" in part for part in old) else "enum"
        yield _Finding(f"may now be something other than {_listing(listed)} ({keyword} removed)")
    elif more := [value for value in now if value not in listed]:
        yield _Finding(f"may now also be {_listing(more)}")


def _relaxed_bounds(
    old: constraints.Parts, new: constraints.Parts, both: frozenset[str]
) -> Iterator[_Finding]:
    listed = constraints.values(new)
    for measure in constraints.MEASURES:
        was = constraints.bound(old, measure, None)
        is_of_both = measure.type in both or (measure.type == "number" and "integer" in both)
        if was is None or not is_of_both:
            continue
        now = constraints.bound(new, measure, listed)
        if (listed is None or now is not None) and constraints.is_looser(now, was, measure):
            change = f"{was.keyword} removed"
            if now is not None and now.keyword == was.keyword:
                change = f"{was.keyword} {_short(forms.canonical(was.value))} → {_short(forms.canonical(now.value))}"
            yield _Finding(f"may now {_short(constraints.describe_beyond(was, measure))} ({change})")


def _relaxed_patterns(
    old: constraints.Parts, new: constraints.Parts, listed: Mapping[str, Any] | None
) -> Iterator[_Finding]:
    patterns = [part["pattern"] for part in new if isinstance(part.get("pattern"), str)]
    for part in old:
        pattern = part.get("pattern")
        if not isinstance(pattern, str) or pattern in patterns:
            continue
        compiled = validator.linear(pattern) if listed is not None else None
        texts = [value for value in (listed or {}).values() if isinstance(value, str)]
        if compiled is not None and all(compiled.search(text) for text in texts):
            continue
        change = f"{_short(pattern)} → {_short(patterns[0])}" if patterns else f"{_short(pattern)} removed"
        yield _Finding(f"may now be another text (pattern {change})")


def _steps(parts: constraints.Parts) -> int:
    """Return the work of comparing the parts, in steps: mostly, their values are read several times."""
    listed = [value for part in parts for value in (part.get("const"), part.get("enum")) if value is not None]
    items = sum(len(value) for value in listed if isinstance(value, list))
    return (items + len(parts)) // 10 + sum(len(forms.canonical(value)) for value in listed) // 500


def _under(name: str, findings: Iterable[_Finding]) -> list[_Finding]:
    return [finding._replace(path=(name, *finding.path)) for finding in findings]


def _sentence(finding: _Finding) -> str:
    if not finding.path:
        return f"the argument object {finding.text}"
    path = finding.path[0]
    for name in finding.path[1:]:
        path += name if name.startswith("[") else f".{name}"
    return f"“{texts.cut(path, MAX_PATH_LENGTH)}” {finding.text}"


def _listing(named: Iterable[str]) -> str:
    return texts.listing([_short(text) for text in named], 3)


def _short(text: str) -> str:
    return texts.cut(text, MAX_SHOWN_LENGTH)
