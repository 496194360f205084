"""The process that workers are forked from, with Toolbelt already loaded, because loading takes longer than a test.

`multiprocessing` imports this module once, in its fork server, which opens no connection.
"""

from __future__ import annotations

import django
import mcp

django.setup()

from toolbelt.runtime import calls, plugins  # noqa: E402
from toolbelt.runtime.upstream import process_connections  # noqa: E402

__all__ = ["calls", "mcp", "plugins", "process_connections"]
