"""Authorization of MCP methods, with the same rules as the HTTP API.

=======================  ================  ===============================================================
method                   an agent's token  an operator's token
=======================  ================  ===============================================================
``tools/call``           its own agent     with write scope, if the operator may flip the agent's switches
``prompts/get``          its own agent     the same
``resources/read``       its own agent     the same; any for the policy
``completion/complete``  its own agent     the same
all others               its own agent     any
=======================  ================  ===============================================================

For an agent's token, every other agent is not found, whether it exists or not. A client that signed in has a token of
its agent, and calls only while its person may use the agent; for every other agent, it has to sign in again.
"""

from __future__ import annotations

from django.contrib import auth

from toolbelt.control.people import rights
from toolbelt.core import errors
from toolbelt.mcp import protocol, request_head
from toolbelt.runtime import credentials


def authenticate(token: str, agent: str) -> credentials.Bearer:
    """Return the bearer of this token. Raise ProtocolError if it does not allow access. Call it in a thread."""
    bearer = credentials.recognize(token)
    if bearer is None:
        raise request_head.unknown_token(is_sent=True)
    if bearer.is_client and bearer.agent != agent:
        raise request_head.unknown_token(is_sent=True)
    if bearer.kind == "agent" and bearer.agent != agent:
        raise request_head.unknown_agent(errors.NotYourAgent(agent))
    return bearer


def check_call(bearer: credentials.Bearer, agent: str) -> None:
    """Raise ProtocolError unless the bearer may call the agent's tools. Call it in a thread."""
    if bearer.kind == "agent" and not bearer.is_client:
        return
    user = auth.get_user_model()._default_manager.filter(pk=bearer.user or 0, is_active=True).first()
    if bearer.is_client:
        if user is None or not rights.may_use(user, agent):
            raise _forbidden(
                f"The person who signed in may no longer use {agent}. Required permission: {rights.USE}."
            )
        return
    if bearer.scope != "write":
        raise _forbidden(f"This token of {bearer.name} is read-only. Use a token with write scope.")
    if user is None or not rights.may_flip(user, agent):
        raise _forbidden(f"{bearer.name} may not call tools. Required permission: {rights.FLIP}.")


def _forbidden(message: str) -> protocol.ProtocolError:
    challenge = b'Bearer realm="toolbelt", error="insufficient_scope"'
    return protocol.ProtocolError(
        protocol.INVALID_REQUEST, message, status=403, headers=((b"www-authenticate", challenge),)
    )
