"""The methods for upstream servers' prompts, resources and templates.

``prompts/list``, ``prompts/get``, ``resources/list``, ``resources/templates/list``, ``resources/read`` and
``completion/complete``. The error for a missing, a hidden and a denied entry is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from toolbelt.core import admitting as rules
from toolbelt.core import prompts_and_resources, uri_templates, uris
from toolbelt.core.rules import budgets
from toolbelt.mcp import exchanges, ongoing_call, protocol, request_head, results, revisions, tool_calls
from toolbelt.runtime import calls
from toolbelt.runtime.calls import prompts_and_resources as requests
from toolbelt.runtime.surfaces import prompt_and_resource_lists

MAX_SHOWN = 1000
_NOT_FOUND = frozenset({"unknown-tool", "tool-not-active", "tool-denied"})
_NO_VALUES: Mapping[str, Any] = {"completion": {"values": [], "total": 0, "hasMore": False}}


async def answer(
    exchange: exchanges.Exchange,
    head: request_head.RequestHead,
    message: protocol.Message,
    revision: revisions.Revision,
) -> exchanges.Reply | None:
    """Return the reply, or None if it was sent already. Raise ProtocolError if the agent has no such entry."""
    match message.method:
        case "prompts/list":
            return await list_page(exchange, head, message, revision, "prompts")
        case "prompts/get":
            name, target = _prompt(message)
        case protocol.COMPLETE:
            name, target = _completion(message)
        case _:  # resources/read; :mod:`resources` answers the other methods of resources, and the policy.
            name, target = _resource(message)
    before = await exchange.current_list(head, may_grow=not revision.is_modern)
    if before.is_stale:
        # The agent's permissions cannot be checked now.
        raise _fault(calls.unchecked(), message, revision, name)
    call = ongoing_call.OngoingCall(
        head=head,
        bearer=before.bearer,
        call=calls.Call(
            key=head.key._replace(request_id=exchange.request_id),
            tool=name,
            arguments=message.params.get("arguments") or {},
            method=message.method,
        ),
        target=target,
        progress_token=protocol.progress_token(message) if head.takes_events else None,
        contexts=exchange.shared.contexts,
        context=before.context,
    )
    result = functools.partial(_result, message=message, revision=revision, name=name)
    return await tool_calls.run(exchange, message, revision, call, result)


async def list_page(
    exchange: exchanges.Exchange,
    head: request_head.RequestHead,
    message: protocol.Message,
    revision: revisions.Revision,
    section: str,
    before: tuple[Mapping[str, Any], ...] = (),
) -> exchanges.Reply:
    """Return a list of prompts, resources or templates. ``before`` are documents that precede all others."""
    after = protocol.cursor(message)
    may_grow = not revision.is_modern
    current = await exchange.current_list(head, may_grow=may_grow)
    name = "prompts" if section == "prompts" else "resources"
    exchange.shared.record_sent(head, current.tools, name, may_grow=may_grow)
    listed: prompt_and_resource_lists.NonToolList = {
        "prompts": current.tools.non_tools.prompts,
        "resources": current.tools.non_tools.resources,
        "resourceTemplates": current.tools.non_tools.templates,
    }[section]
    page, last = listed.page(after)
    result: dict[str, Any] = {**(results.MODERN_LIST if revision.is_modern else {})}
    if last is not None:
        result["nextCursor"] = protocol.cursor_after(last)
    return exchange.reply(
        message, {**result, section: [*(before if after is None else ()), *page]}, is_stale=current.is_stale
    )


def _prompt(message: protocol.Message) -> tuple[str, requests.Target]:
    name, arguments = message.params.get("name"), message.params.get("arguments")
    if not isinstance(name, str):
        raise protocol.ProtocolError(protocol.INVALID_PARAMS, "params.name must be the name of a prompt.")
    sent_arguments = {"arguments": texts} if (texts := _texts(arguments, "params.arguments")) else {}
    return name, requests.Target(
        find=lambda resolved: prompts_and_resources.find_prompt(resolved, name),
        params=lambda upstream_name: {"name": upstream_name, **sent_arguments},
    )


def _resource(message: protocol.Message) -> tuple[str, requests.Target]:
    uri = message.params.get("uri")
    if not isinstance(uri, str):
        raise protocol.ProtocolError(protocol.INVALID_PARAMS, "params.uri must be a string.")
    return uri, requests.Target(
        find=lambda resolved: prompts_and_resources.find_resource(resolved, uri),
        # For a template, the client's URI names the resource.
        params=lambda upstream_name: {"uri": uri},
    )


def _completion(message: protocol.Message) -> tuple[str, requests.Target]:
    ref, argument, context = (message.params.get(name) for name in ("ref", "argument", "context"))
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, "params.ref and params.argument must be JSON objects."
        )
    completed_argument = _texts({name: argument.get(name) for name in ("name", "value")}, "params.argument")
    context_arguments = _texts(
        (context or {}).get("arguments") if isinstance(context, dict | None) else "", "params.context"
    )
    is_prompt = ref.get("type") == "ref/prompt"
    name = ref.get("name" if is_prompt else "uri")
    if ref.get("type") not in ("ref/prompt", "ref/resource") or not isinstance(name, str):
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, "params.ref must name a prompt or a resource template."
        )
    completed_name = completed_argument["name"]
    if not is_prompt:
        # What the template does not name cannot be checked, so it is not sent.
        of_template = uri_templates.variables(name)
        context_arguments = {key: context_arguments[key] for key in context_arguments if key in of_template}
        if completed_name not in of_template:
            raise protocol.ProtocolError(
                protocol.INVALID_PARAMS, "params.argument.name must be a variable of the template."
            )

    def find_with(resolved: budgets.Resolution, value: str) -> str | None:
        if is_prompt:
            return prompts_and_resources.find_prompt(resolved, name)
        values = {**context_arguments, completed_name: value}
        return prompts_and_resources.find_template(resolved, name, values)

    def may_show(resolved: budgets.Resolution, value: str) -> bool:
        return find_with(resolved, value) in resolved.non_tools

    def params(upstream_name: str) -> Mapping[str, Any]:
        upstream_ref = {"type": ref["type"], "name" if is_prompt else "uri": upstream_name}
        return {
            "ref": upstream_ref,
            "argument": completed_argument,
            **({"context": {"arguments": context_arguments}} if context_arguments else {}),
        }

    return name, requests.Target(
        find=lambda resolved: find_with(resolved, completed_argument["value"]),
        params=params,
        may_show=None if is_prompt else may_show,
    )


def _texts(document: Any, where: str) -> dict[str, str]:
    """Return a mapping of strings. Raise ProtocolError for anything else."""
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, f"{where} must be a JSON object whose values are strings."
        )
    return document


async def _result(
    answer: calls.Answer, *, message: protocol.Message, revision: revisions.Revision, name: str
) -> Mapping[str, Any]:
    """Return the result of a request. Raise ProtocolError if it was refused."""
    if isinstance(answer, rules.Refusal):
        is_completion = message.method == protocol.COMPLETE
        if not is_completion or (answer.mcp or {}).get("code") != protocol.METHOD_NOT_FOUND:
            raise _fault(answer, message, revision, name)
        # Not every server with prompts completes their arguments.
        result = dict(_NO_VALUES)
    else:
        result = dict(answer.mcp or {})
    if not revision.is_modern:
        return result
    extra = results.MODERN_LIST if message.method == "resources/read" else results.MODERN
    return {**result, **extra, "_meta": {**result.get("_meta", {}), **results.SERVER_META}}


def not_found(message: protocol.Message, revision: revisions.Revision, name: str) -> protocol.ProtocolError:
    """Return the error for an entry that the agent does not have, whatever the reason."""
    if message.method.startswith("resources/"):
        # The URI's own problem says nothing about what exists.
        how_to_write_it = f" {problem}" if (problem := uris.problem(name)) else ""
        return protocol.ProtocolError(
            protocol.INVALID_PARAMS if revision.is_modern else protocol.RESOURCE_NOT_FOUND,
            f"There is no such resource that you may read.{how_to_write_it}",
            data={"uri": name[:MAX_SHOWN]},
        )
    return protocol.ProtocolError(protocol.INVALID_PARAMS, f"There is no {name[:100]!r} that you may use.")


def _fault(
    refusal: rules.Refusal, message: protocol.Message, revision: revisions.Revision, name: str
) -> protocol.ProtocolError:
    if refusal.code in _NOT_FOUND:
        return not_found(message, revision, name)
    code = (refusal.mcp or {}).get("code")
    if code in (protocol.INVALID_PARAMS, protocol.RESOURCE_NOT_FOUND):
        # The server's error is more specific: for example, nothing is at this URI, or an argument is missing.
        is_resource = message.method.startswith("resources/")
        code = (
            protocol.RESOURCE_NOT_FOUND if is_resource and not revision.is_modern else protocol.INVALID_PARAMS
        )
        return protocol.ProtocolError(code, refusal.message)
    return protocol.ProtocolError(protocol.INTERNAL_ERROR, refusal.message, status=200)
