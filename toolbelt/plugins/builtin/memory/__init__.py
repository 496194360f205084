"""What does an agent know from before? Notes that it writes, finds, lists and forgets; each agent has its own."""
