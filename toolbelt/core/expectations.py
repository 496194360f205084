"""Expectations: whether a scenario's step had the expected result (docs/how-to/test-your-configuration.md).

An expectation that cannot fail is worse than none: an unknown key, and a value of a shape that matches any result, is
itself a mismatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolbelt.core import errors, rules, surface

_NAMED_ONLY = ("existing_options", "candidate_options")
# What was expected, and the actual result.
Mismatch = tuple[str, str]


def of_call(content: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Yield a mismatch for each expected key that the structured content of a call's result does not have."""
    for key, value in expected.items():
        if key not in content:
            yield f"{key} = {value!r}", f"no {key} (there are {', '.join(content)})"
        elif key in _NAMED_ONLY and isinstance(value, Mapping):
            # The answer names the options that conflict, and withholds their values.
            if value.keys() != content[key].keys():
                yield f"{key} named {sorted(value)}", str(sorted(content[key]))
        elif content[key] != value:
            yield f"{key} = {value!r}", repr(content[key])


def of_surface(answer: surface.Surface, expected: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Yield the mismatches between a surface and the expectations."""
    decisions = answer.resolution.all_decisions()
    by_state = {state: {k for k, d in decisions.items() if d.state == state} for state in rules.STATES}
    for key, value in expected.items():
        stem, _, manner = key.rpartition("_")
        if key in by_state:
            yield from _same_set(key, value, by_state[key])
        elif stem in by_state and manner in ("includes", "excludes"):
            yield from _part(stem, manner, value, by_state[stem])
        elif key in _CHECKS:
            yield from _CHECKS[key](answer, value)
        else:
            near = errors.nearest(key, EXPECTATIONS)
            hint = f" (did you mean {' or '.join(near)}?)" if near else ""
            yield "a known expectation", f"the unknown key {key!r}{hint}"


def _same_set(name: str, expected: Any, actual: Iterable[str]) -> Iterator[Mismatch]:
    if not _is_list(expected) or sorted(expected) != sorted(actual):
        yield f"{name} = {sorted(expected) if _is_list(expected) else expected!r}", str(sorted(actual))


def _part(state: str, manner: str, expected: Any, actual: set[str]) -> Iterator[Mismatch]:
    if not _is_list(expected):
        yield f"a list of tools for {state}_{manner}", repr(expected)
    elif manner == "includes" and (missing := set(expected) - actual):
        yield f"{state} to include {sorted(missing)}", str(sorted(actual))
    elif manner == "excludes" and (present := set(expected) & actual):
        yield f"{state} without {sorted(present)}", str(sorted(actual))


def _because(answer: surface.Surface, expected: Any) -> Iterator[Mismatch]:
    if not isinstance(expected, Mapping):
        yield "reason codes by tool", repr(expected)
        return
    decisions = answer.resolution.all_decisions()
    for tool, code in expected.items():
        actual = decisions[tool].code if tool in decisions else "no such tool"
        if actual != code:
            yield f"{tool} because {code}", actual


def _policy(answer: surface.Surface, expected: Any) -> Iterator[Mismatch]:
    sections = answer.policy.sections
    actual = [{"tool" if s.tool else "toolkit": s.tool or s.toolkit, "state": s.state} for s in sections]
    if actual != expected:
        yield f"policy sections {expected}", str(actual)


def _policy_includes(answer: surface.Surface, expected: Any) -> Iterator[Mismatch]:
    if not _is_list(expected):
        yield "a list of texts", repr(expected)
        return
    yield from (
        (f"policy with {t!r}", repr(answer.policy.text)) for t in expected if t not in answer.policy.text
    )


def _policy_excludes(answer: surface.Surface, expected: Any) -> Iterator[Mismatch]:
    if not _is_list(expected):
        yield "a list of texts", repr(expected)
        return
    yield from (
        (f"policy without {t!r}", repr(answer.policy.text)) for t in expected if t in answer.policy.text
    )


def _directive(answer: surface.Surface, expected: Any) -> Iterator[Mismatch]:
    actual = answer.document()["directive"]
    if not isinstance(expected, Mapping) or actual is None:
        if expected != actual:
            yield f"directive {expected}", str(actual)
        return
    for key, value in expected.items():
        if key == "active_tools":
            yield from _same_set("directive active_tools", value, actual[key])
        elif actual.get(key) != value:
            yield f"directive {key} = {value!r}", repr(actual.get(key))


def _meta_tools(answer: surface.Surface, expected: Any) -> Iterator[Mismatch]:
    yield from _same_set("meta_tools", expected, [definition.name for definition in answer.meta_tools])


def _is_list(expected: Any) -> bool:
    return isinstance(expected, list) and all(isinstance(item, str) for item in expected)


_CHECKS: Mapping[str, Callable[[surface.Surface, Any], Iterator[Mismatch]]] = {
    "because": _because,
    "policy": _policy,
    "policy_includes": _policy_includes,
    "policy_excludes": _policy_excludes,
    "directive": _directive,
    "meta_tools": _meta_tools,
}

# Every key of an expectation of a surface.
EXPECTATIONS = (
    *rules.STATES,
    *(f"{state}_{manner}" for state in rules.STATES for manner in ("includes", "excludes")),
    *_CHECKS,
)
