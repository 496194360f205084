"""The rules for who may change the connection to an upstream server.

A command is code that runs on this machine, with access to what this process may read. Operators with a shell may run
code anyway, but a dashboard login is not a shell. A command and its fields are therefore set only from the command line
(``manage.py mcp``, ``manage.py belt import``), unless a setting allows otherwise. A URL may be set through any
interface; but variables of the server's environment that it names would be sent there, so it may only name those that
are listed in a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.core import connections, errors

# These actors have a shell on the server, or are the server. An import through the web has neither: it is "screen" or
# "api".
SHELL_INTERFACES = frozenset({"command", "import", "system"})


def check_change(
    actor: writing.Actor, name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> None:
    """Raise Refused for a change of a plugin's connection that may not be made through this interface."""
    old, new = (before or {}).get("upstream") or {}, (after or {}).get("upstream") or {}
    named = (*connections.COMMAND_FIELDS, *connections.URL_FIELDS, "client_secret")
    changed = {key for key in named if old.get(key) != new.get(key)}
    if not changed or not new or actor.via in SHELL_INTERFACES:
        return
    if changed.intersection(connections.COMMAND_FIELDS) and new.get("command") and not conf.STDIO_BY_WEB:
        raise errors.Refused(
            f"The command of {name} runs code on the server: set it there, with `{_shell_command(name, old)}`, or"
            " allow it on the web with TOOLBELT_STDIO_BY_WEB."
        )
    connection = connections.of(new)
    for variable in connection.variables() if connection else ():
        if not connections.is_listed(variable, conf.WEB_VARIABLES):
            raise errors.Refused(
                f"{name} would be sent the variable {variable} of the server's environment: add it to"
                f" TOOLBELT_WEB_VARIABLES to allow that on the web, or run `{_shell_command(name, old)}` on the server."
            )


def _shell_command(name: str, old: Mapping[str, Any]) -> str:
    return f"{conf.COMMAND} mcp add {name}{' --replace' if old else ''}"
