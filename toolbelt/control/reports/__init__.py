"""Reports for operators: overviews, calls, usage and changes."""
