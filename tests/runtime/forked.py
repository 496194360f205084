"""What each worker is forked from: a process that has loaded Toolbelt, which takes longer than most tests do.

`multiprocessing` imports this module once, in a process of its own (its fork server), which opens no connection.
"""

from __future__ import annotations

import django
import mcp

django.setup()

from toolbelt.runtime import calls, plugins, upstream_connections  # noqa: E402

__all__ = ["calls", "mcp", "plugins", "upstream_connections"]
