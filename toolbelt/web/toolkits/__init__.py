"""The toolkits: list, page and editor."""
