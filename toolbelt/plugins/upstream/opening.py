"""Creation of a client for a server, from its stored connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import toolbelt
from toolbelt.core import connections
from toolbelt.plugins import variables
from toolbelt.plugins.upstream import live_connection

if TYPE_CHECKING:
    import mcp
    from mcp.client.session import MessageHandlerFnT

INSTALL = "The client of MCP servers is not installed: run `pip install 'toolbelt-switchboard[mcp]'` for it."


def load() -> None:
    """Import the client, which takes about a second the first time; for a thread. Raise UnreachableError."""
    try:
        import mcp  # noqa: F401

        from toolbelt.plugins.upstream import outgoing, transports  # noqa: F401
    except ImportError as error:
        raise live_connection.UnreachableError(INSTALL) from error


def client(
    reached: connections.Connection,
    environ: Mapping[str, str],
    live: live_connection.LiveConnection,
    *,
    ended: Callable[[], None],
    session_over: Callable[[], None],
    heard: MessageHandlerFnT,
    may_ask: bool = False,
) -> mcp.Client:
    """Return a client, not yet entered. ``ended`` is called when the server is gone, and ``heard`` with each message.

    ``session_over`` is called when the server no longer knows the session, before a call finds out. ``may_ask``: an
    operator lets the server ask users. Raise UnreachableError if the client is not installed, or a variable of the
    connection is not set.
    """
    try:
        import mcp
        import mcp_types

        from toolbelt.plugins.upstream import outgoing, transports
    except ImportError as error:
        raise live_connection.UnreachableError(INSTALL) from error
    if reached.command:
        env = _filled(reached.env, environ)
        transport = transports.process(reached, env, live.stderr, ended, live.give_up)
    else:
        headers = _filled(reached.headers, environ)
        url = _filled({"url": reached.url}, environ)["url"]
        transport = transports.http(
            url,
            headers,
            reached.timeout,
            live.note_status,
            ended,
            live.give_up,
            session_over,
            live.note_session,
        )
    return mcp.Client(
        outgoing.adjusted(transport, may_ask=may_ask),
        cache=None,
        client_info=mcp_types.Implementation(name="toolbelt", version=toolbelt.__version__),
        message_handler=heard,
        elicitation_callback=live.running_calls.elicit,
        logging_callback=live.running_calls.log,
    )


def _filled(texts: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    filled, problems = {}, []
    for name, text in texts.items():
        filled[name], wrong = variables.fill(text, environ)
        problems += wrong
    if problems:
        raise live_connection.UnreachableError(" ".join(problems))
    return filled
