"""Agents and their sessions: their versions, comparing and copying them."""
