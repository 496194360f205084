"""The demo's plugins, which run where the database has the demo's catalog and no plugins file is set."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from django.conf import settings
from django.db import Error, connections

from toolbelt import locations
from toolbelt.plugins import plugins_file
from toolbelt.store import plugins

FILE = locations.ASSETS / "fixtures/demo/plugins.yaml"
# Where an installation may be a demo; elsewhere, simulated results would be taken for real ones.
ENVIRONMENTS = ("demo", "development")


def file() -> Path | None:
    """Return the demo's plugins file if it fits this installation, otherwise None."""
    if settings.ENVIRONMENT not in ENVIRONMENTS:
        return None
    # In a thread, because plugins may be loaded on an event loop.
    with ThreadPoolExecutor(1) as pool:
        return FILE if pool.submit(_has_catalog).result() else None


def _has_catalog() -> bool:
    """Return whether the database has every plugin of the demo, in code: no other catalog has all of them."""
    entries = plugins_file.read(FILE, os.environ).entries
    try:
        return {entry.class_name or entry.id for entry in entries} <= plugins.names_in_code()
    except Error:
        return False  # the tables are missing, or the database cannot be reached
    finally:
        connections.close_all()
