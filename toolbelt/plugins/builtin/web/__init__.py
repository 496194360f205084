"""web: reads public pages as text."""
