"""The operators' screens: parse, make one call to `control` or `runtime`, present."""
