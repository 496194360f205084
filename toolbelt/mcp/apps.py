"""Clients that show the screens of servers (MCP Apps, the extension ``io.modelcontextprotocol/ui``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import details
from toolbelt.mcp import list_changes, protocol, request_head, revisions


def shows_screens(capabilities: Any) -> bool:
    """Return whether a client with these capabilities shows screens, and so takes tools for apps only."""
    extensions = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    declared = extensions.get(details.APPS_EXTENSION) if isinstance(extensions, Mapping) else None
    if not isinstance(declared, Mapping):
        return False
    types = declared.get("mimeTypes", [details.SCREEN_TYPE])
    return isinstance(types, list) and details.SCREEN_TYPE in types


def is_host(head: request_head.RequestHead, message: protocol.Message, revision: revisions.Revision) -> bool:
    """Return whether the client of a request shows screens: by its session up to 2025-11-25, then by each request."""
    if revision.is_modern:
        return shows_screens(message.meta.get(protocol.CAPABILITIES))
    return list_changes.shows_screens(head.client_session)
