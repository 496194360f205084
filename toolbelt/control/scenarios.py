"""Do an operator's own scenarios hold? They are tests of a configuration, kept beside its belt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt import conf
from toolbelt.control import belt_texts
from toolbelt.core import errors, scenarios


def read(text: str, form: belt_texts.Form) -> list[dict[str, Any]]:
    """Read the scenarios that the text of a file holds: one at the least.

    Raises errors.Invalid where it cannot be read, or could be in two ways, and where it is no list of scenarios.
    """
    try:
        found = json.loads(text, object_pairs_hook=_object) if form == "json" else belt_texts.read(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"This cannot be read: {error}.") from error
    if not isinstance(found, list) or not all(isinstance(scenario, dict) for scenario in found):
        raise _invalid("A scenario file is a list of scenarios.")
    if not found:
        raise _invalid("It holds no scenario, so nothing would be tried.")
    return found


def run(scenario: Mapping[str, Any]) -> list[scenarios.Failure]:
    """Run one scenario through the pure core, without a database; what did not come out as expected."""
    # The vocabulary takes a moment to load, and few scenarios have a budget of tokens, in the belt or in an edit.
    counts = _says(scenario, "max_tokens")
    world = scenarios.CoreWorld(count_tokens=_count if counts else None, kind_loadouts=conf.KIND_LOADOUTS)
    return list(scenarios.run(scenario, world))


def run_all(found: Sequence[Mapping[str, Any]]) -> list[list[scenarios.Failure]]:
    """Run the scenarios of one file, where each has a name of its own; for each, what did not come out as expected."""
    names = Counter(str(scenario.get("id")) for scenario in found)
    return [run(scenario) + _shared(str(scenario.get("id")), names) for scenario in found]


def _shared(name: str, names: Mapping[str, int]) -> list[scenarios.Failure]:
    if names[name] < 2:
        return []
    got = f"one that {names[name]} scenarios of this file have"
    return [scenarios.Failure(scenario=name, step=0, expected="an id of its own", got=got)]


def _says(scenario: Mapping[str, Any], word: str) -> bool:
    """Say whether the word stands anywhere in the scenario, whatever YAML has made of it."""
    try:
        return word in repr(scenario)
    except RecursionError:
        return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Read a mapping, as :mod:`toolbelt.control.belt_texts` does: a key that stands twice is refused."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"the key {name!r} stands twice in one mapping")
    return dict(pairs)


def _invalid(message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path="", message=message)])


def _count(text: str) -> int:
    from toolbelt.store import tokens

    return tokens.count(text)
