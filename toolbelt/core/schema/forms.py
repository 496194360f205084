"""Canonical JSON, and comparison of values as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Any) -> str:
    """Return ``value`` as canonical JSON: keys sorted, no spaces, characters unescaped."""
    return _ENCODER.encode(value)


def comparable(value: Any) -> str:
    """Return a text that is equal for two values if they are the same JSON: 1 equals 1.0, true does not equal 1."""
    return canonical(_whole(value))


def _whole(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _whole(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole(item) for item in value]
        case float() if value.is_integer():
            return int(value)
    return value
