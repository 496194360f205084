"""Changes of what exists: entries of every kind, their order and names, and what is proposed."""
