"""The tools: list and page."""
