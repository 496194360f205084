"""How is a client made for a server, from what is stored of how to reach it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import toolbelt
from toolbelt.core import connections
from toolbelt.plugins import variables
from toolbelt.plugins.upstream import lives

if TYPE_CHECKING:
    import mcp
    from mcp.client.session import MessageHandlerFnT

INSTALL = "The client of MCP servers is not installed: run `pip install 'toolbelt[mcp]'` for it."


def client(
    reached: connections.Connection,
    environ: Mapping[str, str],
    life: lives.Life,
    *,
    ended: Callable[[], None],
    session_over: Callable[[], None],
    heard: MessageHandlerFnT,
) -> mcp.Client:
    """Give a client that is still to be entered; ``ended`` is told when the server is gone, ``heard`` each message.

    ``session_over`` is told when the server no longer knows the session, which the connection's next call would learn.

    Raises lives.Unreachable where the client is not installed, or a variable that the connection names is not set.
    """
    try:
        import mcp
        import mcp_types

        from toolbelt.plugins.upstream import transports
    except ImportError as error:
        raise lives.Unreachable(INSTALL) from error
    if reached.command:
        env = _filled(reached.env, environ)
        transport = transports.process(reached, env, life.stderr, ended, life.went)
    else:
        headers = _filled(reached.headers, environ)
        url = _filled({"url": reached.url}, environ)["url"]
        transport = transports.http(url, headers, reached.timeout, life.saw, ended, life.went, session_over)
    return mcp.Client(
        transport,
        cache=None,
        client_info=mcp_types.Implementation(name="toolbelt", version=toolbelt.__version__),
        message_handler=heard,
    )


def _filled(texts: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    found, problems = {}, []
    for name, text in texts.items():
        found[name], wrong = variables.fill(text, environ)
        problems += wrong
    if problems:
        raise lives.Unreachable(" ".join(problems))
    return found
