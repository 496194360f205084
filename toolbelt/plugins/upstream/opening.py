"""Creation of a client for a server, from its stored connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import toolbelt
from toolbelt.core import connections, details, variables
from toolbelt.plugins.upstream import eras, live_connection

if TYPE_CHECKING:
    import mcp
    from mcp.client.session import MessageHandlerFnT

INSTALL = "The client for MCP servers is not installed: run `pip install 'toolbelt-switchboard[mcp]'`."


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSse:
    """A connection over HTTP+SSE. ``on_endpoint`` is called once the server has shown that it speaks it, for which it
    has ``limit`` seconds.
    """

    on_endpoint: Callable[[], None]
    limit: float | None


def load() -> None:
    """Import the client, which takes about a second the first time; for a thread. Raise UnreachableError."""
    try:
        import mcp  # noqa: F401

        from toolbelt.plugins.upstream import http_sse, streams, transports  # noqa: F401
    except ImportError as error:
        raise live_connection.UnreachableError(INSTALL) from error


def client(
    settings: connections.Connection,
    environ: Mapping[str, str],
    live: live_connection.LiveConnection,
    *,
    on_end: Callable[[], None],
    on_session_end: Callable[[], None],
    on_message: MessageHandlerFnT,
    may_ask: bool = False,
    tokens: live_connection.Tokens | None = None,
    probe: eras.Probe | None = None,
    http_sse: HttpSse | None = None,
) -> mcp.Client:
    """Return a client, not yet entered. ``on_end`` is called when the server is gone.

    ``on_message`` is called with each message, and ``on_session_end`` when the server no longer knows the session,
    before a call finds out. ``may_ask``: an operator lets the server ask users. ``tokens`` are those of the sign-in at
    the server. Without a ``probe``, the server is initialized at once; over HTTP+SSE if that is given. Raise
    UnreachableError if the client is not installed, or a variable of the connection is not set.
    """
    try:
        import mcp
        import mcp_types
        from mcp.client import extension

        from toolbelt.plugins.upstream import http_sse as http_sse_transport
        from toolbelt.plugins.upstream import streams, transports
    except ImportError as error:
        raise live_connection.UnreachableError(INSTALL) from error
    settings = filled(settings, environ)
    if settings.command:
        transport = transports.process(
            settings, settings.env, live.stderr, live.give_up, live.output.data_received, live.note_exit
        )
    else:
        common = (
            settings.url,
            settings.headers,
            settings.timeout,
            live.note_status,
            live.give_up,
            on_session_end,
        )
        if http_sse is None:
            transport = transports.http(*common, live.note_session, tokens)
        else:
            transport = http_sse_transport.opened(*common, http_sse.on_endpoint, http_sse.limit, tokens)
    return mcp.Client(
        streams.wrapped(transport, may_ask=may_ask, lists=live.lists, on_end=on_end, probe=probe),
        mode="legacy" if probe is None else "auto",
        cache=None,
        # Toolbelt passes on screens, and servers may offer them only to clients that announce this.
        extensions=[extension.advertise(details.APPS_EXTENSION, {"mimeTypes": [details.SCREEN_TYPE]})],
        client_info=mcp_types.Implementation(name="toolbelt", version=toolbelt.__version__),
        message_handler=on_message,
        elicitation_callback=live.running_calls.elicit,
        logging_callback=live.running_calls.log,
    )


def filled(settings: connections.Connection, environ: Mapping[str, str]) -> connections.Connection:
    """Return a connection without variables. Raise UnreachableError for those that are not set."""
    problems: list[str] = []

    def fill(text: str) -> str:
        text, wrong = variables.fill(text, environ)
        problems.extend(wrong)
        return text

    without = settings.filled(fill)
    if problems:
        raise live_connection.UnreachableError(" ".join(dict.fromkeys(problems)))
    return without
