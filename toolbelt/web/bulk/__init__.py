"""Setting many switches or overrides at once."""
