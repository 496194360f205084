"""The review: tools that wait for a decision, and what else needs attention."""
