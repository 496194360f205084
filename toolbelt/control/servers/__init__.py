"""Plugins and the servers behind them: import, approval, settings and state."""
