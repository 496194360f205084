"""The dashboard: parse, make one call to `control` or `runtime`, present."""
