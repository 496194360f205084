"""Search and jump: agents, toolkits, tools, pages, and actions in words."""
