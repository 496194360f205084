"""Who asks here, and what may they do? The same doors as the HTTP API's, for the methods of MCP.

======================  ========================================  ===================================================
method                  an agent's token                          an operator's token
======================  ========================================  ===================================================
``tools/call``          its own agent                             that may write, and flip the agent's switches
all others              its own agent                             any
======================  ========================================  ===================================================

Another agent is not found for an agent's token, whether it exists or not.
"""

from __future__ import annotations

from django.contrib import auth

from toolbelt.control import rights
from toolbelt.mcp import heads, protocol
from toolbelt.runtime import access


def admitted(token: str, agent: str) -> access.Bearer:
    """Give who sent this token, in a thread that may block. Raises protocol.Fault for whom it does not let in."""
    bearer = access.recognize(token)
    if bearer is None:
        raise heads.unknown_token(is_sent=True)
    if bearer.kind == "agent" and bearer.agent != agent:
        raise heads.unknown_agent(agent)
    return bearer


def check_call(bearer: access.Bearer, agent: str) -> None:
    """Refuse calls by whoever may only look at the agent, in a thread that may block. Raises protocol.Fault."""
    if bearer.kind == "agent":
        return
    if bearer.scope != "write":
        raise _forbidden(f"This token of {bearer.name} may only read: call with one that may write.")
    user = auth.get_user_model()._default_manager.filter(pk=bearer.user or 0, is_active=True).first()
    if user is None or not rights.may_flip(user, agent):
        raise _forbidden(f"{bearer.name} may not call: it takes the permission {rights.FLIP}.")


def _forbidden(message: str) -> protocol.Fault:
    challenge = b'Bearer realm="toolbelt", error="insufficient_scope"'
    return protocol.Fault(
        protocol.INVALID_REQUEST, message, status=403, headers=((b"www-authenticate", challenge),)
    )
