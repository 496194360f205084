"""Trust X-Forwarded-For only if the installation names its proxies.

By default, uvicorn trusts it from this machine, unless FORWARDED_ALLOW_IPS says otherwise. A client on the same
machine, or through a forwarded port, could then choose the address that logins are limited by and that is logged.
"""

from __future__ import annotations

import os
from typing import Any

import structlog

VARIABLE = "FORWARDED_ALLOW_IPS"
# Without the variable, uvicorn trusts only this address.
_LOOPBACK = ("127.0.0.1", 0)

_log = structlog.get_logger(__name__)
_reported = False


def check_client(scope: dict[str, Any]) -> None:
    """Restore the client's address to this machine's if it was set by a client, or by a proxy that is not named."""
    global _reported
    for name, value in scope["headers"]:
        if name == b"x-forwarded-for" and (client := scope.get("client")) and VARIABLE not in os.environ:
            if client[0] not in value.decode("latin-1"):
                continue
            scope["client"] = _LOOPBACK
            if not _reported:
                _reported = True
                _log.warning("X-Forwarded-For not believed", wanting=VARIABLE)
