"""The plugins and upstream servers: list, page and review."""
