"""memory: notes that an agent writes, searches, lists and deletes; each agent has its own."""
