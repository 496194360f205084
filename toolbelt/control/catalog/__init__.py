"""Changes of entries of every kind, their order and their names, and proposals of changes."""
