"""What was imported from files of MCP clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.db import connection

from toolbelt.control.servers import upstream_servers
from toolbelt.control.servers.client_files import importing
from toolbelt.core import connections

FILES = Path(__file__).parent / "client_files"
URL = "https://x.example/mcp"


def stored_connections() -> dict[str, connections.Connection]:
    return {server.plugin.name: server.connection for server in upstream_servers.servers()}


def everything_stored() -> str:
    """Return the content of all tables as text."""
    texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608
            texts += [repr(row) for row in cursor.fetchall()]
    return "\n".join(texts)


def converted(server: dict[str, Any], **document: Any) -> importing.Converted:
    [result] = importing.examine(json.dumps({"mcpServers": {"x": server}, **document})).servers
    return result
