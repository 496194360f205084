"""Putting one thing of a list before another."""
