"""The log levels of MCP clients: the lowest level at which each receives upstream servers' log messages."""

from __future__ import annotations

from toolbelt.store import log_levels

# From the least to the most severe.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
# For clients that initialize a session and set no level.
DEFAULT = "info"


def set_(key: str, level: str) -> None:
    """Set the level of the client with this key."""
    log_levels.set_(key, level)


def find(key: str) -> str:
    """Return the level of the client with this key, or the default."""
    return log_levels.find(key) or DEFAULT


def is_delivered(level: str, minimum: str) -> bool:
    """Return whether a client with this minimum level receives a message of this level."""
    return LEVELS.index(level) >= LEVELS.index(minimum)
