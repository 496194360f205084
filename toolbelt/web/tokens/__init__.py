"""The API tokens."""
