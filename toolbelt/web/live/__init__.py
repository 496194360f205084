"""The stream that tells open pages of changes."""
