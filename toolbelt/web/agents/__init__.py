"""The list of agents."""
