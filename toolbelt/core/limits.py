"""Bounds that several places have to agree on. A bound of one place is beside the code that keeps it."""

from __future__ import annotations

# The largest body of a request without a valid token or login, in bytes: a belt of a few toolkits, or a password.
UNAUTHENTICATED_BODY_BYTES = 100_000
# How often a silent stream sends a comment, in seconds: proxies close a connection that is silent for half a minute or
# longer. Whether its token or login is still valid is checked as often.
KEEP_ALIVE_SECONDS = 15.0
# How many tools or entries a page of an MCP list has. Some clients read only the first page, so it must hold more tools
# than a model can use.
MCP_PAGE_SIZE = 500
# How much of a failure or a server's message is the reason of an audit entry, in characters.
REASON_LENGTH = 500
