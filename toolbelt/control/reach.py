"""Who may say how an upstream server is reached?

A command is code that runs on this machine, with what it may read there. Whoever has a shell may run code anyway; a
login to the dashboard is no shell. So a command, and all that belongs to it, comes in by a command alone
(``manage.py mcp``, ``manage.py belt import``), unless the installation says otherwise. An address may come from any
door; but a variable of the server's environment that it names would be sent there: so it may name those alone that
were set aside for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt import conf
from toolbelt.control import actors
from toolbelt.core import connections, errors

# Who comes through these has a shell on the server, or is the server. A web page that imports a belt is neither: it
# says "screen" or "api".
SHELLS = frozenset({"command", "import", "system"})


def guard(
    actor: actors.Actor, name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> None:
    """Refuse a change of a plugin's connection that may not come this way."""
    was, wanted = (before or {}).get("upstream") or {}, (after or {}).get("upstream") or {}
    changed = {key for key in (*connections.RUN, *connections.ASKED) if was.get(key) != wanted.get(key)}
    if not changed or not wanted or actor.via in SHELLS:
        return
    if changed.intersection(connections.RUN) and wanted.get("command") and not conf.STDIO_BY_WEB:
        raise errors.Refused(
            f"The command of {name} is code that runs on the server: change it there, with"
            f" `{conf.COMMAND} mcp add`, or let the web do it with TOOLBELT_STDIO_BY_WEB."
        )
    reached = connections.of(wanted)
    for variable in reached.variables() if reached else ():
        if not _is_set_aside(variable):
            raise errors.Refused(
                f"{name} would be sent the variable {variable} of the server's environment: name it in"
                f" TOOLBELT_WEB_VARIABLES if the web may do that, or run `{conf.COMMAND} mcp add` on the server."
            )


def _is_set_aside(variable: str) -> bool:
    return any(
        variable.startswith(allowed[:-1]) if allowed.endswith("*") else variable == allowed
        for allowed in conf.WEB_VARIABLES
    )
