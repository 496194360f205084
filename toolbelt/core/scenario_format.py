"""The format of scenarios, and whether a scenario can fail (docs/how-to/test-your-configuration.md).

A scenario that passes whatever the rules do is worse than none: unknown keys, and expectations that cannot fail, are
themselves mismatches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from toolbelt.core import belts, errors, expectations, grants, sessions

# A scenario may have other keys, for remarks, unless they look like a misspelling of one of these.
KEYS = ("id", "note", "from", "now", "lenient", "identical_calls", "belt", "expect_error", "steps")
_STEPS: Mapping[str, tuple[str, ...]] = {
    "surface": ("agent", "session", "request_id", "message", "subagent"),
    "call": ("agent", "session", "request_id", "tool", "arguments", "subagent"),
    "approve": ("agent", "tool", "by"),
    "reject": ("agent", "tool", "by", "note"),
    "edit": (),
}
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "surface": ("agent",),
    "call": ("agent", "tool"),
    "approve": ("agent", "tool"),
    "reject": ("agent", "tool"),
    "edit": (),
}
# What is done, and has no answer.
_ACTS = {"approve": "an approval", "reject": "a rejection", "edit": "an edit"}
_NAMED_BY = {kind.section: kind.named_by for kind in belts.KINDS.values() if kind.named_by}


def of_scenario(written: Mapping[Any, Any]) -> Iterator[expectations.Mismatch]:
    """Check the shape of a scenario around its belt and steps, which are checked when they run."""
    if not isinstance(written.get("id"), str) or not written["id"].strip():
        yield "an id, which names it", "none" if "id" not in written else _shown(written["id"])
    for key in written:
        near = errors.nearest(key, KEYS) if isinstance(key, str) and key not in KEYS else ()
        if near:
            yield "a key that a scenario has", f"{key} (did you mean {' or '.join(near)}?)"
    if not isinstance(written.get("belt"), Mapping):
        yield "a belt, by section", _shown(written["belt"]) if "belt" in written else "none"
    if "now" in written and (problem := time_problem(written["now"])):
        yield problem, _shown(written["now"])
    if not isinstance(written.get("lenient", False), bool):
        yield "lenient: true or false", _shown(written["lenient"])
    limit = written.get("identical_calls", 0)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        yield "identical_calls: a number of calls, 0 for no limit", _shown(limit)
    steps = written.get("steps")
    if not isinstance(steps, list | None):
        yield "a list of steps", _shown(steps)
    elif "expect_error" in written:
        yield from _of_refusal(written["expect_error"], steps or [])


def _of_refusal(expected: Any, steps: list[Any]) -> Iterator[expectations.Mismatch]:
    path = expected.get("path") if isinstance(expected, Mapping) else expected
    if not isinstance(path, str) or (isinstance(expected, Mapping) and set(expected) != {"path"}):
        yield "expect_error with a path, and nothing else", _shown(expected)
    if steps:
        yield "no steps beside expect_error", f"{len(steps)}"


def expects_something(written: Mapping[str, Any]) -> bool:
    """Return whether a scenario of this shape can fail; with a lenient belt, any answer is enough."""
    if "expect_error" in written:
        return True
    steps = written.get("steps") or []
    queries = [step for step in steps if _ACTS.keys().isdisjoint(step)]
    expected = [(key, value) for step in queries for key, value in step.get("expect", {}).items()]
    # An empty list is always included, and never excluded.
    vacuous = ("_includes", "_excludes", "because")
    return any(value or not str(key).endswith(vacuous) for key, value in expected) or (
        bool(queries) and written.get("lenient") is True
    )


def of_step(written: Any) -> list[expectations.Mismatch]:
    """Check the shape of a step: one thing to do, with known keys, and expectations only where there is an answer."""
    kinds = [kind for kind in _STEPS if isinstance(written, Mapping) and kind in written]
    if len(kinds) != 1:
        return [(f"a step that does one of {', '.join(_STEPS)}", _listed(written))]
    kind, parameters = kinds[0], written[kinds[0]]
    mismatches = [
        (f"a step of {kind} and expect", key) for key in written if key not in (kind, "expect", "note", "now")
    ]
    if "now" in written and (problem := time_problem(written["now"])):
        mismatches.append((problem, _shown(written["now"])))
    if kind in _ACTS and "expect" in written:
        mismatches.append((f"{_ACTS[kind]}, which has no answer", "expect"))
    if not isinstance(written.get("expect", {}), Mapping):
        mismatches.append(("expectations by key", _shown(written["expect"])))
    if not isinstance(parameters, Mapping):
        return [*mismatches, (f"what to {kind}, by key", _shown(parameters))]
    return mismatches + list(_of_edit(parameters) if kind == "edit" else _of_query(kind, parameters))


def _of_query(kind: str, parameters: Mapping[str, Any]) -> Iterator[expectations.Mismatch]:
    yield from ((f"a key that {kind} has", key) for key in parameters if key not in _STEPS[kind])
    yield from (
        (f"{kind} with {key}", _listed(parameters)) for key in _REQUIRED[kind] if key not in parameters
    )
    for key, value in parameters.items():
        is_left_out = value is None and key not in _REQUIRED[kind]
        if key in _STEPS[kind] and key != "arguments" and not isinstance(value, str) and not is_left_out:
            yield f"text for {key}", _shown(value)
        elif (
            key in ("session", "request_id") and value is not None and (problem := sessions.id_problem(value))
        ):
            yield f"{key}: {problem}", _shown(value)


def _of_edit(parameters: Mapping[str, Any]) -> Iterator[expectations.Mismatch]:
    if not parameters:
        yield "something to edit", "nothing"
    for section, entries in parameters.items():
        named_by = _NAMED_BY.get(section)
        if named_by is None:
            yield f"an edit of {', '.join(_NAMED_BY)}", str(section)
        elif not isinstance(entries, list) or not entries:
            yield f"a list of {section} to edit", _shown(entries)
        else:
            nameless = [entry for entry in entries if not isinstance(entry, Mapping) or named_by not in entry]
            yield from ((f"a {named_by} for each of the {section}", _shown(entry)) for entry in nameless)


def time_problem(written: Any) -> str:
    """Return a description of a valid time if this is none; else an empty text."""
    return "" if parse_time(written) else "now: a time with its zone, such as 2031-05-04T14:00:00Z"


def parse_time(written: Any) -> datetime | None:
    """Return the time, to the second, from ISO 8601 text with its zone or from a datetime that YAML parsed."""
    return grants.parse_time(written.isoformat() if isinstance(written, datetime) else written)


def _listed(written: Any) -> str:
    return ", ".join(map(str, written)) if isinstance(written, Mapping) else _shown(written)


def _shown(written: Any) -> str:
    try:
        return repr(written)
    except RecursionError:
        return "a value that is nested too deeply to be shown"
