"""The conversation that a request of 2026-07-28 names itself, at an address without a session.

That revision has no sessions, so that a client's lists never depend on its earlier calls. A call may, by an id that the
client sends with it: in ``_meta``, or in the header that earlier revisions use. Lists ignore the id.
"""

from __future__ import annotations

from toolbelt.core import sessions
from toolbelt.mcp import protocol, request_head

# The key of a session's id in a request's ``_meta``.
SESSION = "toolbelt/session"

_METHODS = frozenset({protocol.CALL, protocol.COMPLETE, "prompts/get", "resources/read"})


def with_session(head: request_head.RequestHead, message: protocol.Message) -> request_head.RequestHead:
    """Return the head with the session that the request names. Raise ProtocolError if its id is not valid.

    A session in the address counts before one in the header, and ``_meta`` must not name another one.
    """
    if message.method not in _METHODS:
        return head
    requested = message.meta.get(SESSION)
    if requested is None:
        if head.session is not None or not head.client_session:
            return head
        return head._replace(session=_checked(head.client_session, "Mcp-Session-Id"))
    where = f'_meta["{SESSION}"]'
    if head.session not in (None, requested):
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, f"{where} names another session than the address. Send one of them."
        )
    return head._replace(session=_checked(requested, where))


def _checked(name: object, where: str) -> str:
    """Return the id of a session. Raise ProtocolError if it is not valid."""
    problem = sessions.id_problem(name) if isinstance(name, str) else "an id is a string."
    if problem is not None or not isinstance(name, str):
        raise protocol.ProtocolError(protocol.INVALID_PARAMS, f"{where} names no session: {problem}")
    return name
