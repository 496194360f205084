"""What operators read: overviews, calls, usage and changes."""
