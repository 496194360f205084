"""FastMCP's proxy: ``url ADDRESS TOKEN`` serves a server over stdio, ``command PORT TRANSPORT …`` at a port."""

from __future__ import annotations

import sys

from fastmcp.client import transports
from fastmcp.server import create_proxy

kind, *arguments = sys.argv[1:]
if kind == "url":
    address, token = arguments
    target: transports.ClientTransport = transports.StreamableHttpTransport(address, auth=token)
    create_proxy(target, dereference_schemas=False).run(transport="stdio", show_banner=False)
else:
    port, transport, *command = arguments
    target = transports.StdioTransport(command[0], command[1:])
    create_proxy(target, dereference_schemas=False).run(
        transport=transport, port=int(port), show_banner=False
    )
