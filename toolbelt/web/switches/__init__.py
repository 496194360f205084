"""Flipping switches and setting overrides."""
