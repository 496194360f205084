"""Comparing two agents."""
