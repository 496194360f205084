"""JSON in one canonical form, and values compared as JSON compares them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Any) -> str:
    """Return ``value`` as JSON in its one form here: keys sorted, no spaces, characters as they are."""
    return _ENCODER.encode(value)


def comparable(value: Any) -> str:
    """Return a text that two values share if they are the same JSON: 1 is 1.0, and true is not 1."""
    return canonical(_whole(value))


def _whole(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _whole(one) for key, one in value.items()}
        case list() | tuple():
            return [_whole(one) for one in value]
        case float() if value.is_integer():
            return int(value)
    return value
