"""The audit log, at ``/changes/``."""
