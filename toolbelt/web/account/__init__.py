"""Your own account."""
