"""Connections to upstream servers: this process's own, and those that other processes hold."""
