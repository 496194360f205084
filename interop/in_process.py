"""Toolbelt in a part's own process, on the server's database, with the server's settings."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

# The server's plugins are not importable here, and none of them is called here.
_NOT_HERE = frozenset({"TOOLBELT_PLUGINS_FILE", "PYTHONPATH"})


@functools.cache
def _set_up() -> Any:
    kept = json.loads(Path(os.environ["TOOLBELT_MANAGE"]).read_text(encoding="utf-8"))["environment"]
    os.environ.update({name: value for name, value in kept.items() if name not in _NOT_HERE})
    os.environ["DJANGO_SETTINGS_MODULE"] = "toolbelt.settings"
    import django

    django.setup()
    from toolbelt.runtime import connection

    return connection


def connection(agent: str) -> Any:
    """Return a connection for an agent that needs no server."""
    return _set_up().Local(agent)
