"""Is this a scenario, and could it fail? (the scenario files: Steps, Expectations)

A scenario that holds whatever the rules do is worse than none: what the format does not have, and what says nothing, is
itself a mismatch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from toolbelt.core import belts, errors, expectations, grants, sessions

# Beside these a writer may keep remarks of any name, unless it looks like one of these and is none.
KEYS = ("id", "note", "from", "now", "lenient", "belt", "expect_error", "steps")
_STEPS: Mapping[str, tuple[str, ...]] = {
    "surface": ("agent", "session", "request_id", "message", "subagent"),
    "call": ("agent", "session", "request_id", "tool", "arguments", "subagent"),
    "edit": (),
}
_REQUIRED: Mapping[str, tuple[str, ...]] = {"surface": ("agent",), "call": ("agent", "tool"), "edit": ()}
_NAMED_BY = {kind.section: kind.named_by for kind in belts.KINDS.values() if kind.named_by}


def of_scenario(written: Mapping[Any, Any]) -> Iterator[expectations.Mismatch]:
    """Check the shape of what stands around the steps; the belt and each step are looked at when they are taken."""
    if not isinstance(written.get("id"), str) or not written["id"].strip():
        yield "an id, to name it by", "none" if "id" not in written else _shown(written["id"])
    for key in written:
        near = errors.nearest(key, KEYS) if isinstance(key, str) and key not in KEYS else ()
        if near:
            yield "a key that a scenario has", f"{key} (did you mean {' or '.join(near)}?)"
    if not isinstance(written.get("belt"), Mapping):
        yield "a belt, by section", _shown(written["belt"]) if "belt" in written else "none"
    if "now" in written and (problem := of_now(written["now"])):
        yield problem, _shown(written["now"])
    if not isinstance(written.get("lenient", False), bool):
        yield "lenient: true or false", _shown(written["lenient"])
    steps = written.get("steps")
    if not isinstance(steps, list | None):
        yield "a list of steps", _shown(steps)
    elif "expect_error" in written:
        yield from _of_refusal(written["expect_error"], steps or [])


def _of_refusal(wanted: Any, steps: list[Any]) -> Iterator[expectations.Mismatch]:
    path = wanted.get("path") if isinstance(wanted, Mapping) else wanted
    if not isinstance(path, str) or (isinstance(wanted, Mapping) and set(wanted) != {"path"}):
        yield "expect_error with a path, and nothing else", _shown(wanted)
    if steps:
        yield "no steps, as a belt that is refused takes none", f"{len(steps)}"


def expects_something(written: Mapping[str, Any]) -> bool:
    """Say whether a scenario of this shape could come out otherwise; of a lenient belt an answer is enough."""
    if "expect_error" in written:
        return True
    steps = written.get("steps") or []
    asked = [step for step in steps if "edit" not in step]
    told = [(key, value) for step in asked for key, value in step.get("expect", {}).items()]
    # An empty list is always among what there is, and never.
    vacuous = ("_includes", "_excludes", "because")
    return any(value or not str(key).endswith(vacuous) for key, value in told) or (
        bool(asked) and written.get("lenient") is True
    )


def of_step(written: Any) -> list[expectations.Mismatch]:
    """Check the shape of a step: one thing to do, with keys that it has, and expectations of what has an answer."""
    kinds = [kind for kind in _STEPS if isinstance(written, Mapping) and kind in written]
    if len(kinds) != 1:
        return [(f"a step that does one of {', '.join(_STEPS)}", _listed(written))]
    kind, asked = kinds[0], written[kinds[0]]
    found = [
        (f"a step of {kind} and expect", key) for key in written if key not in (kind, "expect", "note", "now")
    ]
    if "now" in written and (problem := of_now(written["now"])):
        found.append((problem, _shown(written["now"])))
    if kind == "edit" and "expect" in written:
        found.append(("an edit, which has no answer", "expect"))
    if not isinstance(written.get("expect", {}), Mapping):
        found.append(("expectations by key", _shown(written["expect"])))
    if not isinstance(asked, Mapping):
        return [*found, (f"what to {kind}, by key", _shown(asked))]
    return found + list(_of_edit(asked) if kind == "edit" else _of_question(kind, asked))


def _of_question(kind: str, asked: Mapping[str, Any]) -> Iterator[expectations.Mismatch]:
    yield from ((f"a key that {kind} has", key) for key in asked if key not in _STEPS[kind])
    yield from ((f"{kind} with {key}", _listed(asked)) for key in _REQUIRED[kind] if key not in asked)
    for key, one in asked.items():
        is_left_out = one is None and key not in _REQUIRED[kind]
        if key in _STEPS[kind] and key != "arguments" and not isinstance(one, str) and not is_left_out:
            yield f"text for {key}", _shown(one)
        elif key in ("session", "request_id") and one is not None and (problem := sessions.id_problem(one)):
            yield f"{key}: {problem}", _shown(one)


def _of_edit(asked: Mapping[str, Any]) -> Iterator[expectations.Mismatch]:
    if not asked:
        yield "something to edit", "nothing"
    for section, entries in asked.items():
        named_by = _NAMED_BY.get(section)
        if named_by is None:
            yield f"an edit of {', '.join(_NAMED_BY)}", str(section)
        elif not isinstance(entries, list) or not entries:
            yield f"a list of {section} to edit", _shown(entries)
        else:
            nameless = [one for one in entries if not isinstance(one, Mapping) or named_by not in one]
            yield from ((f"a {named_by} for each of the {section}", _shown(one)) for one in nameless)


def of_now(written: Any) -> str:
    """Say what a moment has to be, where this is none; empty: it is one."""
    return "" if moment(written) else "now: a moment with its zone, such as 2031-05-04T14:00:00Z"


def moment(written: Any) -> datetime | None:
    """Read a moment, to the second: as a text in ISO 8601 with its zone, or as YAML has read it already."""
    return grants.moment(written.isoformat() if isinstance(written, datetime) else written)


def _listed(written: Any) -> str:
    return ", ".join(map(str, written)) if isinstance(written, Mapping) else _shown(written)


def _shown(written: Any) -> str:
    try:
        return repr(written)
    except RecursionError:
        return "what is nested too deeply to be shown"
