"""The history of an agent."""
