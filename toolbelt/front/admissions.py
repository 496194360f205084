"""Admissions that are answered in front of Django: a call whose agent, catalog and arguments' schema are cached.

Everything else is passed to Django: malformed requests, several calls at once, operators' tokens, and whatever would
take long or wait for the database. Nothing has been recorded then.
"""

from __future__ import annotations

import re

from toolbelt.api import bodies, client_calls, problems
from toolbelt.front import requests
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions
from toolbelt.runtime.surfaces import request_contexts

PATH = re.compile(r"/api/v1/agents/([A-Za-z0-9_.-]{1,64})/calls/admit")
# The name of the view in metrics, as in Django.
VIEW = "api:admit_calls"

_BODY = frozenset({"session", "request_id", "subagent", "calls", "conversation"})
_CALL = frozenset({"tool", "arguments", "version"})
_MAX_TOOL_LENGTH = 200


def parse(request: requests.Request, body: bytes) -> calls.Call | None:
    """Return the only call of a request for admission; None if it is for Django."""
    try:
        document = bodies.read(body)
    except problems.HttpProblem:
        return None
    if request.query or not isinstance(document, dict) or not document.keys() <= _BODY:
        return None
    bodies_of_calls = document.pop("calls", None)
    talk = document.get("conversation") or {}
    if not isinstance(talk, dict) or not talk.keys() <= {"token"}:
        return None
    if not isinstance(bodies_of_calls, list) or len(bodies_of_calls) != 1 or not requests.are_valid(document):
        return None
    (call,) = bodies_of_calls
    if not isinstance(call, dict) or not call.keys() <= _CALL:
        return None
    tool, get = call.get("tool"), document.get
    version = call.get("version") or ""
    if not isinstance(tool, str) or len(tool) > _MAX_TOOL_LENGTH:
        return None
    if not isinstance(version, str) or len(version) > admissions.MAX_VERSION_LENGTH:
        return None
    key = calls.RequestKey(request.agent, get("session"), get("request_id"), get("subagent"))
    return calls.Call(
        key=key,
        tool=tool,
        arguments=call.get("arguments", {}),
        version=version,
        conversation=talk.get("token") or "",
    )


async def find_context(
    contexts: request_contexts.RequestContexts, request: requests.Request, call: calls.Call
) -> request_contexts.RequestContext | None:
    """Return the context of a call if the token is the agent's own; one query. None if it is for Django."""
    context = await contexts.of(request.token, call.key)
    if context is None or context.bearer.kind != "agent" or context.bearer.is_client:
        return None
    return context


def answer(call: calls.Call, context: request_contexts.RequestContext) -> bytes | None:
    """Return the response's body; None if the call is for Django."""
    answered = admissions.admit_at_once(call, "agent", context)
    return None if answered is None else client_calls.document([answered]).encode()
