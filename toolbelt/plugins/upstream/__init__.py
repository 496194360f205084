"""MCP servers that others run, as plugins: the connection to one, and what its answers are made into."""
