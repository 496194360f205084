"""Filters of lists that people save under a name."""
