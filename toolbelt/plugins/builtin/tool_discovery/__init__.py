"""toolDiscovery: a tool that lists the agent's current tools."""
