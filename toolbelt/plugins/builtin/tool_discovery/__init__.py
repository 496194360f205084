"""toolDiscovery: an agent asks what it can do, and is told what is so, not what it remembers."""
