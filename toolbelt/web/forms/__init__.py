"""What may a browser send to the dashboard? Checked here, before anything else looks at it."""
