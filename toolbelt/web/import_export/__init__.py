"""Import & export, at ``/belt/``."""
