"""Did a scenario's step come out as expected? (the scenario files: Steps, Expectations)

An expectation that says nothing is worse than none: a key that there is not, and what is written in a shape that would
hold whatever came out, is itself a mismatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolbelt.core import questions, surface

# What was expected, and what there was instead.
Mismatch = tuple[str, str]


def of_call(content: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Compare the structured content of a call's result with the keys that it must have."""
    for key, value in wanted.items():
        if key not in content:
            yield f"{key} = {value!r}", f"no {key} (there are {', '.join(content)})"
        elif content[key] != value:
            yield f"{key} = {value!r}", repr(content[key])


def of_surface(answer: surface.Surface, wanted: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Compare a surface with what must hold of it."""
    decided = answer.resolution.everything()
    by_state = {state: {k for k, d in decided.items() if d.state == state} for state in questions.STATES}
    for key, value in wanted.items():
        stem, _, manner = key.rpartition("_")
        if key in by_state:
            yield from _same_set(key, value, by_state[key])
        elif stem in by_state and manner in ("includes", "excludes"):
            yield from _part(stem, manner, value, by_state[stem])
        elif key in _CHECKS:
            yield from _CHECKS[key](answer, value)
        else:
            yield "an expectation that the scenario format has", key


def _same_set(what: str, wanted: Any, got: Iterable[str]) -> Iterator[Mismatch]:
    if not _is_list(wanted) or sorted(wanted) != sorted(got):
        yield f"{what} = {sorted(wanted) if _is_list(wanted) else wanted!r}", str(sorted(got))


def _part(state: str, manner: str, wanted: Any, got: set[str]) -> Iterator[Mismatch]:
    if not _is_list(wanted):
        yield f"a list of tools for {state}_{manner}", repr(wanted)
    elif manner == "includes" and (missing := set(wanted) - got):
        yield f"{state} to include {sorted(missing)}", str(sorted(got))
    elif manner == "excludes" and (present := set(wanted) & got):
        yield f"{state} without {sorted(present)}", str(sorted(got))


def _because(answer: surface.Surface, wanted: Any) -> Iterator[Mismatch]:
    if not isinstance(wanted, Mapping):
        yield "reason codes by tool", repr(wanted)
        return
    decided = answer.resolution.everything()
    for tool, code in wanted.items():
        got = decided[tool].code if tool in decided else "no such tool"
        if got != code:
            yield f"{tool} because {code}", got


def _policy(answer: surface.Surface, wanted: Any) -> Iterator[Mismatch]:
    sections = answer.policy.sections
    got = [{"tool" if s.tool else "toolkit": s.tool or s.toolkit, "state": s.state} for s in sections]
    if got != wanted:
        yield f"policy sections {wanted}", str(got)


def _policy_includes(answer: surface.Surface, wanted: Any) -> Iterator[Mismatch]:
    if not _is_list(wanted):
        yield "a list of texts", repr(wanted)
        return
    yield from (
        (f"policy with {t!r}", repr(answer.policy.text)) for t in wanted if t not in answer.policy.text
    )


def _policy_excludes(answer: surface.Surface, wanted: Any) -> Iterator[Mismatch]:
    if not _is_list(wanted):
        yield "a list of texts", repr(wanted)
        return
    yield from (
        (f"policy without {t!r}", repr(answer.policy.text)) for t in wanted if t in answer.policy.text
    )


def _directive(answer: surface.Surface, wanted: Any) -> Iterator[Mismatch]:
    given = answer.document()["directive"]
    if not isinstance(wanted, Mapping) or given is None:
        if wanted != given:
            yield f"directive {wanted}", str(given)
        return
    for key, value in wanted.items():
        if key == "active_tools":
            yield from _same_set("directive active_tools", value, given[key])
        elif given.get(key) != value:
            yield f"directive {key} = {value!r}", repr(given.get(key))


def _meta_tools(answer: surface.Surface, wanted: Any) -> Iterator[Mismatch]:
    yield from _same_set("meta_tools", wanted, [definition.name for definition in answer.meta_tools])


def _is_list(wanted: Any) -> bool:
    return isinstance(wanted, list) and all(isinstance(one, str) for one in wanted)


_CHECKS: Mapping[str, Callable[[surface.Surface, Any], Iterator[Mismatch]]] = {
    "because": _because,
    "policy": _policy,
    "policy_includes": _policy_includes,
    "policy_excludes": _policy_excludes,
    "directive": _directive,
    "meta_tools": _meta_tools,
}
