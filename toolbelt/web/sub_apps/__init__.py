"""The sub-apps: list, page and editor."""
