"""Calls through ``call_tool`` and the answers of ``search_tools`` beside it (docs/how-to/connect-an-mcp-client.md).

Anything that is active or discoverable may be called: naming a tool loads it for that one call only, with the options
that loading it would have set. In a session, ``call_tool`` also takes the meta-tools that load for the whole
conversation. Denials apply as everywhere.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from toolbelt.core import (
    admitting,
    call_approvals,
    gate_rules,
    meta_tools,
    rules,
    schema,
    search_results,
    sessions,
    surface,
)
from toolbelt.core.rules import budgets, resolution

# The meta-tools that call_tool takes in a session.
LOADING = frozenset({meta_tools.LIST, meta_tools.LOAD, meta_tools.UNLOAD})

_HOW_TO_CALL = (
    "Call a result with call_tool: its name as 'tool', and 'arguments' that fit its input_schema. If it has none here,"
    " search for its exact name."
)
_HOW_TO_LOAD = (
    f" To keep one for this conversation, call call_tool with tool '{meta_tools.LOAD}' and arguments"
    """ {"toolkit": …}, the result's 'load'."""
)


def admit(
    resolved: budgets.Resolution,
    snapshot: resolution.Snapshot,
    tool: str,
    arguments: Any,
    *,
    hide_denied: bool = False,
    past: gate_rules.Past = gate_rules.UNKNOWN,
    at: datetime | None = None,
    approval: call_approvals.Approval | None = None,
) -> admitting.Admission | admitting.Refusal:
    """Admit or refuse the call of a tool that was passed to ``call_tool``; ``at`` is the time of the call, and ``past``
    what came before it.
    """
    stored = resolved.context.catalog
    if (
        tool not in stored.tools
        or tool in stored.non_tools
        or (decision := resolved.decision(tool)).state != "discoverable"
    ):
        return admitting.admit(
            resolved, tool, arguments, hide_denied=hide_denied, past=past, at=at, approval=approval
        )
    context = resolved.context if decision.code == "budget" else _loaded(snapshot, decision)
    return admitting.checked(context, tool, arguments, past=past, at=at, approval=approval)


def parse_call(
    resolved: budgets.Resolution, arguments: Any, *, is_offered: bool = False
) -> tuple[str, Any] | admitting.Refusal:
    """Return the tool and the arguments that were passed to ``call_tool``, or a refusal.

    ``is_offered``: the model has ``call_tool``, whether or not it may load anything.
    """
    if refusal := _refusal(resolved, meta_tools.CALL, arguments, is_offered=is_offered):
        return refusal
    return arguments["tool"], arguments.get("arguments", {})


def search_tools(
    resolved: budgets.Resolution, arguments: Any, *, is_offered: bool = False, includes_own: bool = False
) -> admitting.MetaAnswer | admitting.Refusal:
    """Return the answer of ``search_tools``: what can be called through ``call_tool``, the best with their schemas.

    In a session, it also says which name to load, where a load would succeed. ``is_offered``: as in
    :func:`parse_call`. ``includes_own``: also tools that the agent's own program runs.
    """
    if refusal := _refusal(resolved, meta_tools.SEARCH, arguments, is_offered=is_offered):
        return refusal
    message = _HOW_TO_CALL + (_HOW_TO_LOAD if resolved.context.has_session else "")
    page = search_results.of(
        resolved, arguments, longest_message=message, is_dispatch=True, includes_own=includes_own
    )
    if not any("load" in result for result in page.results):
        message = _HOW_TO_CALL if page.results else search_results.NOTHING
    return admitting.MetaAnswer(content=page.answer(message))


def _refusal(
    resolved: budgets.Resolution, tool: str, arguments: Any, *, is_offered: bool
) -> admitting.Refusal | None:
    if not is_offered and not surface.may_load(resolved):
        return admitting.unknown(tool)
    violations = schema.violations(meta_tools.SCHEMAS[tool], arguments)
    return admitting.invalid(tool, violations) if violations else None


def _loaded(snapshot: resolution.Snapshot, decision: resolution.Decision) -> rules.EvaluationContext:
    """Return the context with the tool loaded."""
    kind: sessions.Kind = "toolkit" if decision.code == "loadable" else "tool"
    session = snapshot.session or sessions.Session(key="")
    name = decision.origin.name if decision.code == "loadable" else decision.tool
    after = sessions.with_change(session, kind, name, True, None)
    return resolution.build_context(dataclasses.replace(snapshot, session=after))
