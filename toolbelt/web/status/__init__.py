"""The system status."""
