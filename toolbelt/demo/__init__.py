"""The demo: its belt, and the plugins that answer calls of its tools with simulated results."""
