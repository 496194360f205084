"""Toolbelt in the process of a part, on the server's database, with the server's settings."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

# The server's plugins cannot be imported in this process, which does not call them either.
_EXCLUDED = frozenset({"TOOLBELT_PLUGINS_FILE", "PYTHONPATH"})


@functools.cache
def _set_up() -> Any:
    environment = json.loads(Path(os.environ["TOOLBELT_MANAGE"]).read_text(encoding="utf-8"))["environment"]
    os.environ.update({name: value for name, value in environment.items() if name not in _EXCLUDED})
    os.environ["DJANGO_SETTINGS_MODULE"] = "toolbelt.settings"
    import django

    django.setup()
    from toolbelt.runtime import connection

    return connection


def connection(agent: str) -> Any:
    """Return a connection for an agent that needs no server."""
    return _set_up().Local(agent)
