"""The sessions of an agent."""
