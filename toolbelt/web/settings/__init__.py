"""The settings of an agent."""
