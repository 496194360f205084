"""The whole configuration: belts, scenarios, and the installation's own values."""
