"""The Access page of an agent."""
