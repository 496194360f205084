"""Connecting a client, a program or a framework to one agent."""
