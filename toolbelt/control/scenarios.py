"""Do an operator's own scenarios hold? They are tests of a configuration, kept beside its belt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolbelt import conf
from toolbelt.core import scenarios


def run(scenario: Mapping[str, Any]) -> list[scenarios.Failure]:
    """Run one scenario through the pure core, without a database; what did not come out as expected."""
    # The vocabulary takes a moment to load, and few scenarios have a budget of tokens, in the belt or in an edit.
    counts = "max_tokens" in json.dumps(scenario, default=str)
    world = scenarios.CoreWorld(count_tokens=_count if counts else None, kind_loadouts=conf.KIND_LOADOUTS)
    return list(scenarios.run(scenario, world))


def _count(text: str) -> int:
    from toolbelt.store import tokens

    return tokens.count(text)
