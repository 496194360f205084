"""The log of calls."""
