"""The loadouts: list, page and editor."""
