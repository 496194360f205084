"""The audit log, at ``/audit/``."""
