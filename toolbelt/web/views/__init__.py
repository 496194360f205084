"""What does each address do? Parse, one call through a door, present."""
