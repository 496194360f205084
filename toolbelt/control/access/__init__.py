"""The access of agents to tools: switches, overrides, and their expiries."""
