"""The review: tools that await a decision, and other concerns."""
