"""Reading and running an operator's own scenarios: tests of a configuration, stored with its belt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt import conf
from toolbelt.control.config import belt_texts
from toolbelt.core import errors, scenarios, text_limits


def read(text: str, form: belt_texts.Form) -> list[dict[str, Any]]:
    """Return the scenarios in the text of a file, at least one.

    Raise errors.Invalid if it cannot be read, is ambiguous, or is not a list of scenarios.
    """
    try:
        text_limits.check_size(text)
        document = json.loads(text, object_pairs_hook=_object) if form == "json" else belt_texts.read(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"This cannot be read: {error}.") from error
    if not isinstance(document, list) or not all(isinstance(scenario, dict) for scenario in document):
        raise _invalid("A scenario file is a list of scenarios.")
    if not document:
        raise _invalid("The file contains no scenarios.")
    return document


def run(scenario: Mapping[str, Any]) -> list[scenarios.Failure]:
    """Run one scenario through the core, without a database; return what was not as expected."""
    # Loading the tokenizer takes a moment, and few scenarios have a budget of tokens, in the belt or in an edit.
    counts = _mentions(scenario, "max_tokens")
    world = scenarios.CoreWorld(
        count_tokens=_count if counts else None,
        kind_loadouts=conf.KIND_LOADOUTS,
        identical_calls=conf.IDENTICAL_CALLS,
    )
    return list(scenarios.run(scenario, world))


def run_all(all_scenarios: Sequence[Mapping[str, Any]]) -> list[list[scenarios.Failure]]:
    """Run the scenarios of one file, which need distinct names; return what was not as expected, for each."""
    names = Counter(str(scenario.get("id")) for scenario in all_scenarios)
    return [run(scenario) + _duplicates(str(scenario.get("id")), names) for scenario in all_scenarios]


def _duplicates(name: str, names: Mapping[str, int]) -> list[scenarios.Failure]:
    if names[name] < 2:
        return []
    got = f"one that {names[name]} scenarios of this file have"
    return [scenarios.Failure(scenario=name, step=0, expected="an id of its own", got=got)]


def _mentions(scenario: Mapping[str, Any], word: str) -> bool:
    """Return whether the scenario contains this word anywhere, in a key or value of any type."""
    try:
        return word in repr(scenario)
    except RecursionError:
        return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping; raise ValueError for a repeated key, as :mod:`toolbelt.control.config.belt_texts` does."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"the key {name!r} is repeated in one mapping")
    return dict(pairs)


def _invalid(message: str) -> errors.Invalid:
    return errors.Invalid.of(message)


def _count(text: str) -> int:
    from toolbelt.store import token_counts

    return token_counts.count(text)
