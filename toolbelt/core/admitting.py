"""Admission of calls, and the answers of Toolbelt's own tools (docs/semantics.md: Calls).

A call is admitted against the current surface. A refusal is an answer for the model: a stable code and a sentence that
says what to do. Tools that the agent is not granted are not described.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolbelt.core import (
    call_approvals,
    call_limits,
    catalog,
    declared_versions,
    gate_rules,
    grants,
    loading,
    meta_tools,
    outcomes,
    rules,
    schema,
    search_results,
    sessions,
    surface,
    texts,
)
from toolbelt.core.rules import budgets, resolution, targets

# When a program should ask again, in seconds.
RETRY_AFTER = 5
_NO_LABELS: frozenset[str] = frozenset()
# How many violations a message names; the answer to the model lists all of them.
MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The refusal of a call: ``code`` is one of ``outcomes.REFUSALS``; ``errors`` are problems in the arguments.

    ``mcp`` is the complete MCP result of an upstream server's tool that failed. ``judgement`` is what the gate rules
    said, if one of them denied the call, or asked about it; ``approval`` is then the request to people, once there is
    one, and ``options`` are those that the call would have. ``notice`` is what the model has to know beside it.
    ``resets_at`` is when calls are counted again, if too many were made.
    """

    code: str
    message: str
    errors: tuple[schema.Violation, ...] = ()
    mcp: Mapping[str, Any] | None = None
    judgement: gate_rules.Judgement = gate_rules.NOTHING
    approval: call_approvals.Approval | None = None
    options: Mapping[str, Any] | None = None
    notice: str = ""
    resets_at: datetime | None = None

    @property
    def is_pending(self) -> bool:
        """Return whether people were asked to approve the call, and have not decided yet."""
        return self.code == outcomes.PENDING and self.approval is not None

    def document(self) -> dict[str, Any]:
        """Return the structured content that the model reads."""
        content: dict[str, Any] = {"is_error": True, "code": self.code, "message": self.message}
        if (rule := self.judgement.denied_by) is not None and rule.announce:
            content["rule"] = rule.key
        if (approval := self.approval) is not None and approval.state == "pending":
            expires = grants.format_time(approval.expires)
            content["approval"] = {"id": approval.key, "expires": expires, "retry_after": RETRY_AFTER}
        if self.resets_at is not None:
            content["resets_at"] = grants.format_time(self.resets_at)
        if self.errors:
            content["errors"] = [{"path": error.path, "message": error.message} for error in self.errors]
        if self.notice:
            content["notice"] = self.notice
        return content

    def without_values(self) -> str:
        """Return the reason without argument values, for storage: for invalid arguments, the places and the schema's
        keywords.

        The message quotes the arguments, which may hold a secret.
        """
        if (rule := self.judgement.denied_by) is not None:
            return f"The rule {rule.key} denies it: {self.message}"
        if self.judgement.asked_by:
            return f"{texts.listing([rule.key for rule in self.judgement.asked_by])} asked: {self.message}"
        if not self.errors:
            return self.message
        return "The arguments do not fit: " + _listed((v.path, v.keyword or v.message) for v in self.errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The call is admitted, with the options of the tool's source, which are never mixed into the arguments.

    ``judgement`` has the observed gate rules that would have denied it. ``approval`` is the one that it needs, to be
    spent directly before the tool runs; ``counts`` and ``brings`` are what is counted, and the labels that its session
    gets, at the same time. Calls of tools are admitted by :func:`checked` alone.
    """

    tool: str
    options: Mapping[str, Any] | None = None
    judgement: gate_rules.Judgement = gate_rules.NOTHING
    approval: call_approvals.Approval | None = None
    counts: tuple[gate_rules.Count, ...] = ()
    brings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaAnswer:
    """The answer of a meta-tool; ``session`` is the session after it, None if nothing changed."""

    content: Mapping[str, Any]
    session: sessions.Session | None = None


def admit(
    resolved: budgets.Resolution,
    tool: str,
    arguments: Any,
    *,
    hide_denied: bool = False,
    is_quick: bool = False,
    input_schema: str = "",
    by_host: bool = False,
    past: gate_rules.Past = gate_rules.UNKNOWN,
    at: datetime | None = None,
    approval: call_approvals.Approval | None = None,
) -> Admission | Refusal:
    """Admit or refuse a call of a tool that is not a meta-tool.

    ``input_schema`` is that of the version which is called; by default, of the one that agents have. ``by_host``: the
    program around the model calls, perhaps for an app, so that tools for apps only may be called, too. With
    ``hide_denied``, denied tools are reported as ``unknown-tool``. ``past``, ``at``, ``is_quick`` and ``approval`` are
    as in :func:`checked`.
    """
    context = resolved.context
    stored = context.catalog.tools.get(tool)
    if stored is None or (tool in context.catalog.non_tools and not (by_host and stored.kind == "tool")):
        return unknown(tool)
    if refusal := not_active(resolved, tool, hide_denied=hide_denied):
        return refusal
    return checked(
        context,
        tool,
        arguments,
        input_schema=input_schema,
        past=past,
        at=at,
        is_quick=is_quick,
        approval=approval,
    )


def checked(
    context: rules.EvaluationContext,
    tool: str,
    arguments: Any,
    *,
    input_schema: str = "",
    past: gate_rules.Past = gate_rules.UNKNOWN,
    at: datetime | None = None,
    is_quick: bool = False,
    approval: call_approvals.Approval | None = None,
) -> Admission | Refusal:
    """Admit a call of a tool that its agent has, or refuse it for its arguments: they fit the schema, and no gate rule
    denies them, or asks about them. Every admission of a tool's call is made here.

    ``context`` is what the options are taken from, ``past`` what came before the call, ``at`` the time by which gate
    rules have ended (None: none has). With ``is_quick``, raise schema.TooComplexError if that takes long. ``approval``:
    what people approved for this call answers the rules that it is about, and no others.
    """
    stored = context.catalog
    arguments = filled(stored, tool, arguments)
    takes = input_schema or declared_versions.offered(stored.tools[tool]).input_schema
    if violations := schema.violations(takes, arguments, is_quick=is_quick):
        return invalid(tool, violations)
    options = resolution.options(context, tool)[0]
    brings = stored.brings.get(tool, _NO_LABELS) if stored.brings else _NO_LABELS
    if not stored.gate_rules and past.breaker is None:
        return Admission(tool=tool, options=options, brings=brings)
    judgement = gate_rules.judge(
        stored,
        context.agent,
        tool,
        arguments,
        subagent=context.subagent_kind,
        past=past,
        at=at,
        is_quick=is_quick,
    )
    if (rule := judgement.denied_by) is not None:
        if rule.more_than is not None:
            return too_many_calls(tool, rule.more_than, judgement, at)
        return denied_by_rule(tool, judgement)
    if judgement.asked_by:
        answered: Collection[str] = approval.rules if approval is not None else ()
        if not all(rule.key in answered for rule in judgement.asked_by):
            return asked_about(tool, judgement, options)
        return Admission(
            tool=tool,
            options=options,
            judgement=judgement,
            approval=approval,
            counts=gate_rules.answered(judgement, answered),
            brings=brings,
        )
    return Admission(tool=tool, options=options, judgement=judgement, counts=judgement.counts, brings=brings)


def not_active(resolved: budgets.Resolution, key: str, *, hide_denied: bool = False) -> Refusal | None:
    """Return the refusal of an entry of the catalog that is not active; None if it is active."""
    decision = resolved.decision(key)
    match decision.state:
        case "dormant":
            return unknown(key)
        case "denied" if hide_denied:
            return unknown(key)
        case "denied":
            return Refusal(
                code="tool-denied", message=f"You are not granted {key}. An operator can change that."
            )
        case "unavailable":
            return Refusal(
                code="tool-unavailable", message=f"{key} is not available now. Try something else."
            )
        case "discoverable":
            return Refusal(code="tool-not-active", message=_how_to_get(resolved, decision))
    return None


def filled(stored: catalog.Catalog, tool: str, arguments: Any) -> Any:
    """Return the arguments that the tool receives: for an upstream server's tool, with required defaults filled in."""
    definition = stored.tools[tool]
    provider = stored.plugins.get(definition.plugin)
    if provider is None or not provider.upstream:
        return arguments
    return schema.filled(definition.input_schema, arguments)


def meta(
    resolved: budgets.Resolution, snapshot: resolution.Snapshot, tool: str, arguments: Any, at: str = ""
) -> MetaAnswer | Refusal:
    """Answer a call of one of Toolbelt's own tools, or refuse it."""
    if tool not in meta_tools.DEFINITIONS or not surface.may_load(resolved):
        return unknown(tool)
    violations = schema.violations(meta_tools.SCHEMAS[tool], arguments)
    if violations:
        return invalid(tool, violations)
    return _META[tool](resolved, snapshot, arguments, at)


def _load(_: budgets.Resolution, snapshot: resolution.Snapshot, arguments: Any, at: str) -> MetaAnswer:
    outcome = loading.load(snapshot, arguments["toolkit"], at)
    return MetaAnswer(content=outcome.document(), session=outcome.session)


def _unload(_: budgets.Resolution, snapshot: resolution.Snapshot, arguments: Any, at: str) -> MetaAnswer:
    outcome = loading.unload(snapshot, arguments["toolkit"], at)
    return MetaAnswer(content=outcome.document(), session=outcome.session)


def _list(_: budgets.Resolution, snapshot: resolution.Snapshot, arguments: Any, at: str) -> MetaAnswer:
    return MetaAnswer(content=loading.list_toolkits(snapshot))


def _search(resolved: budgets.Resolution, _: resolution.Snapshot, arguments: Any, at: str) -> MetaAnswer:
    page = search_results.of(resolved, arguments, longest_message=loading.NOT_FOR_SUBAGENTS)
    if not page.results:
        is_subagent = resolved.context.subagent
        message = loading.NOT_FOR_SUBAGENTS if is_subagent else search_results.NOTHING
    elif any("load" in result for result in page.results):
        message = "Give a result's 'load' to load_tools."
    else:
        message = "You have these tools: call them directly."
    return MetaAnswer(content=page.answer(message))


_META: Mapping[str, Callable[[budgets.Resolution, resolution.Snapshot, Any, str], MetaAnswer]] = {
    meta_tools.LIST: _list,
    meta_tools.LOAD: _load,
    meta_tools.UNLOAD: _unload,
    meta_tools.SEARCH: _search,
}


def _how_to_get(resolved: budgets.Resolution, decision: resolution.Decision) -> str:
    context = resolved.context
    is_ = f"{decision.tool} is {'deferred by the budget' if decision.code == 'budget' else 'not loaded'}"
    if context.subagent:
        return f"{is_}. {loading.NOT_FOR_SUBAGENTS}"
    if name := targets.name_to_load(resolved, decision):
        way = f'Call load_tools with toolkit "{name}"'
        return f"{is_}. {way}: its tools are available from the next request."
    if not context.has_session:
        return f"{is_}. {loading.NO_SESSION}"
    return f"{is_}, and cannot be loaded beside the tools that you have. An operator can change that."


def withdrawn(tool: str) -> Refusal:
    """Return the refusal of a tool that the model was told of, and that it may no longer call, for whatever reason."""
    return Refusal(
        code="tool-withdrawn",
        message=f"{tool} is no longer available in this conversation. Go on without it.",
    )


def unknown(tool: str) -> Refusal:
    """Return the refusal of a tool that does not exist, or not for this agent."""
    return Refusal(code="unknown-tool", message=f"There is no tool named {tool!r}.")


def other_version(tool: str) -> Refusal:
    """Return the refusal of a call in a version of the tool that is not approved, or no longer."""
    return Refusal(
        code="tool-unavailable",
        message=f"{tool} is not available now: this program has a version of it that is not approved.",
    )


def run_by_client(tool: str) -> Refusal:
    """Return the refusal of a call of a tool that the agent's own program runs."""
    return Refusal(
        code="run-by-client",
        message=f"{tool} runs in the agent's own program, which has the call admitted"
        " (POST /api/v1/agents/{agent}/calls/admit), runs the tool and reports the outcome.",
    )


def run_by_toolbelt(tool: str) -> Refusal:
    """Return the refusal of an admission of a tool that Toolbelt runs."""
    return Refusal(
        code="run-by-toolbelt",
        message=f"Toolbelt runs {tool}: call it (POST /api/v1/agents/{{agent}}/calls) instead of having it admitted.",
    )


def invalid(tool: str, violations: tuple[schema.Violation, ...]) -> Refusal:
    """Return the refusal of arguments that do not fit."""
    places = _listed((v.path, v.message) for v in violations)
    return Refusal(
        code="invalid-arguments", message=f"The arguments do not fit {tool}: {places}", errors=violations
    )


def denied_by_rule(tool: str, judgement: gate_rules.Judgement) -> Refusal:
    """Return the refusal of a call that a gate rule denies, with the rule's reason."""
    rule = judgement.denied_by
    reason = rule.reason.strip() if rule is not None else ""
    message = reason or f"A rule denies this call of {tool}. Call it in another way, or go on without it."
    return Refusal(code="denied-by-rule", message=message, judgement=judgement)


def too_many_calls(
    tool: str, limit: call_limits.CallLimit, judgement: gate_rules.Judgement, at: datetime | None
) -> Refusal:
    """Return the refusal of a call beyond the limit of a rule, with what was counted and when that begins again."""
    resets_at = limit.resets(at or datetime(1970, 1, 1, tzinfo=UTC))
    reason = judgement.denied_by.reason.strip() if judgement.denied_by is not None else ""
    if limit.of == "identical":
        times = f"{limit.calls} time{'' if limit.calls == 1 else 's'} {limit.span}"
        message = f"{tool} was called with exactly these arguments {times} already. Use the answer that you have, or"
        message += " change the arguments."
    else:
        message = f"{tool} was not called: a rule allows {limit.words}."
    message = f"{reason or message} Calls are counted from zero again at {grants.format_time(resets_at)}."
    return Refusal(code="quota-reached", message=message, judgement=judgement, resets_at=resets_at)


def asked_about(
    tool: str, judgement: gate_rules.Judgement, options: Mapping[str, Any] | None = None
) -> Refusal:
    """Return the refusal of a call that people have to approve first, before they are asked."""
    message = f"{_reason(judgement)}A person has to approve this call of {tool}."
    return Refusal(code=outcomes.PENDING, message=message, judgement=judgement, options=options)


def pending(approval: call_approvals.Approval, judgement: gate_rules.Judgement) -> Refusal:
    """Return the refusal of a call about which people were asked, and have not decided yet."""
    message = f"{_reason(judgement)}Waiting for approval {approval.key}. Call again with exactly the same arguments."
    return Refusal(code=outcomes.PENDING, message=message, judgement=judgement, approval=approval)


def rejected(approval: call_approvals.Approval, judgement: gate_rules.Judgement) -> Refusal:
    """Return the refusal of a call that a person rejected, with their note."""
    why = f": {approval.note}" if approval.note else "."
    message = f"An operator rejected this call of {approval.tool}{why}"
    return Refusal(code="approval-rejected", message=message, judgement=judgement, approval=approval)


def expired(approval: call_approvals.Approval, judgement: gate_rules.Judgement) -> Refusal:
    """Return the refusal of a call that no one approved in time, or that was not made again in time."""
    message = f"Approval {approval.key} has expired. Go on without this call of {approval.tool}, or call again to ask."
    return Refusal(code="approval-expired", message=message, judgement=judgement, approval=approval)


def too_many_approvals(tool: str, judgement: gate_rules.Judgement) -> Refusal:
    """Return the refusal of a call that would be asked about, while too many others wait for people."""
    message = (
        f"{tool} was not called: too many of your calls wait for approval. Call again once some are decided."
    )
    return Refusal(code="too-many-approvals", message=message, judgement=judgement)


def _reason(judgement: gate_rules.Judgement) -> str:
    """Return the reasons of the rules that ask, before what is said about the call."""
    reasons = dict.fromkeys(rule.reason.strip() for rule in judgement.asked_by)
    return "".join(f"{reason} " for reason in reasons if reason)


def _listed(violations: Iterable[tuple[str, str]]) -> str:
    listed = [f"{path}: {why}" if path else why for path, why in violations]
    more = ["and more"] if len(listed) > MAX_NAMED else []
    return "; ".join([*listed[:MAX_NAMED], *more])
