"""What an agent may use: switches, overrides, and when they end."""
