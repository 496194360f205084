"""The preview of an agent."""
