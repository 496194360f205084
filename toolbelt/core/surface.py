"""Surfaces: what exactly the model receives (docs/concepts.md: How a surface is computed).

A surface is everything that the model receives for one request: the active tools, their policy text, and the directive
for the message. Equal content has an equal fingerprint, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbelt.core import definitions, directives, meta_tools, policy, schema, texts
from toolbelt.core.rules import budgets, resolution, targets

MAX_NAMES = 50
TOKENIZER = "o200k_base"
_META_TOOLS = tuple(meta_tools.DEFINITIONS.values())

Because = Mapping[str, resolution.Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Warning_:
    """Something that an operator should know: ``code`` is stable, ``message`` a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Discoverable:
    """The loadable tools: their number, and the names of toolkits and plugins (at most 50 of each)."""

    count: int
    toolkits: tuple[str, ...]
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The answer to a request. ``tools`` are the active ones in key order, without the ``meta_tools``; ``tool_choice``
    applies to every step, the ``directive`` only to the first.
    """

    agent: str
    session: str | None
    request_id: str | None
    revision: int
    fingerprint: str
    tools: tuple[definitions.Definition, ...]
    meta_tools: tuple[definitions.Definition, ...]
    tool_choice: Literal["auto", "none"]
    policy: policy.Policy
    directive: directives.Directive | None
    warnings: tuple[Warning_, ...]
    resolution: budgets.Resolution = field(repr=False, compare=False)

    @property
    def because(self) -> Because:
        """Return the decision for each active tool, by key."""
        return self.resolution.active

    @property
    def spent(self) -> budgets.Spent:
        """Return the numbers of active tools and tokens, with the agent's budget."""
        return self.resolution.spent

    @property
    def discoverable(self) -> Discoverable:
        """Return the loadable tools. They are not part of the fingerprint, and are computed on each access."""
        count = 0
        toolkits: dict[str, None] = {}
        plugins: dict[str, None] = {}
        for decision in self.resolution.discoverable():
            count += 1
            if decision.code == "loadable":
                toolkits[decision.origin.name] = None
            elif decision.code == "pattern":
                plugins[self.resolution.context.catalog.tools[decision.tool].plugin or decision.tool] = None
        return Discoverable(
            count=count,
            toolkits=tuple(sorted(toolkits)[:MAX_NAMES]),
            plugins=tuple(sorted(plugins)[:MAX_NAMES]),
        )

    def content(self) -> dict[str, Any]:
        """Return the part of the surface that the model receives, as JSON; the fingerprint covers this part."""
        sent = sorted((*self.tools, *self.meta_tools), key=lambda definition: definition.name)
        return {
            "active_tools": [definition.name for definition in sent],
            "tool_choice": self.tool_choice,
            "directive": self.directive and self.directive.document(),
            "tools": [definition.document() for definition in sent],
            "policy": {
                "text": self.policy.text,
                "sections": [
                    {"tool" if s.tool else "toolkit": s.tool or s.toolkit, "state": s.state, "text": s.text}
                    for s in self.policy.sections
                ],
            },
        }

    def document(self) -> dict[str, Any]:
        """Return the surface as a JSON document for the wire."""
        loadable, spent = self.discoverable, self.spent
        return {
            "agent": self.agent,
            "session": self.session,
            "request_id": self.request_id,
            "model": self.resolution.context.agent.model,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            **self.content(),
            "discoverable": {
                "count": loadable.count,
                "toolkits": list(loadable.toolkits),
                "plugins": list(loadable.plugins),
            },
            "budget": {
                "tools": spent.tools,
                "tokens": spent.tokens,
                "policy_tokens": spent.policy_tokens,
                "tokenizer": TOKENIZER,
                "max_tools": spent.budget.max_tools if spent.budget else None,
                "max_tokens": spent.budget.max_tokens if spent.budget else None,
            },
            "warnings": [{"code": warning.code, "message": warning.message} for warning in self.warnings],
        }


def build(
    snapshot: resolution.Snapshot, message: str | None = None, *, revision: int | None = None
) -> Surface:
    """Resolve the snapshot and return its surface.

    ``message`` is the user's message, sent only with the first step of a request: without it, there is no directive.
    """
    return of(budgets.resolve(snapshot), snapshot, message, revision=revision)


def of(
    resolved: budgets.Resolution,
    snapshot: resolution.Snapshot,
    message: str | None = None,
    *,
    revision: int | None = None,
) -> Surface:
    """Return the surface of a snapshot that is already resolved."""
    stored, active = snapshot.catalog, resolved.active
    members = policy.active_members(stored, active)
    policy_ = policy.build(stored, active, members, resolved.context.concerned)
    loadable = [stored.toolkits[key] for key in targets.loadable(resolved)]
    policy_ = policy.with_loadable(policy_, loadable)
    directive = directives.build(stored, members, active, message)
    tools = tuple([definitions.of(stored, key) for key in active])
    # A toolkit in the list can be loaded, or is loaded and can be unloaded.
    meta_tools_ = _META_TOOLS if loadable or targets.is_anything_to_change(resolved) else ()
    tool_choice: Literal["auto", "none"] = "auto" if tools or meta_tools_ else "none"
    return Surface(
        agent=snapshot.agent.key,
        session=snapshot.session.key if snapshot.session is not None else None,
        request_id=snapshot.request_id,
        revision=stored.number if revision is None else revision,
        fingerprint=_fingerprint(tools, meta_tools_, tool_choice, policy_.text, directive),
        tools=tools,
        meta_tools=meta_tools_,
        tool_choice=tool_choice,
        policy=policy_,
        directive=directive,
        warnings=_warnings(resolved),
        resolution=resolved,
    )


def may_load(resolved: budgets.Resolution) -> bool:
    """Return whether the agent's configuration lets it load anything: it has allowed toolkits, or something is
    discoverable, or was loaded by name.

    Calls of the meta-tools are then answered with their status, also while a surface has none because all would
    refuse; the model may remember them from earlier in the conversation.
    """
    context = resolved.context
    return (
        bool(context.agent.allowed_toolkits)
        or bool(context.tools_by_name or context.plugins_by_name)
        or resolved.has_discoverable()
    )


def _fingerprint(
    tools: tuple[definitions.Definition, ...],
    meta_tools_: tuple[definitions.Definition, ...],
    tool_choice: str,
    policy_text: str,
    directive: directives.Directive | None,
) -> str:
    digest = hashlib.sha256(b"".join([definition.digest for definition in (*tools, *meta_tools_)]))
    focus = [list(directive.active_tools), directive.tool_choice] if directive else None
    digest.update(schema.canonical([len(tools), len(meta_tools_), tool_choice, policy_text, focus]).encode())
    return "sha256:" + digest.hexdigest()


def _warnings(resolved: budgets.Resolution) -> tuple[Warning_, ...]:
    result = []
    spent = resolved.spent
    if resolved.removed:
        names = texts.listing([*dict.fromkeys(d.origin.name for d in resolved.deferred.values())])
        message = f"The budget deferred {texts.counted(len(resolved.deferred), 'tool')}: {names}."
        result.append(Warning_(code="budget-deferred", message=message))
    if spent.is_exceeded and spent.budget is not None:
        message = (
            f"{texts.counted(spent.tools, 'tool')} and {texts.counted(spent.tokens, 'token')} are active;"
            f" the budget is {_at_most(spent.budget.max_tools, 'tool')}"
            f" and {_at_most(spent.budget.max_tokens, 'token')}."
        )
        result.append(Warning_(code="over-budget", message=message))
    context = resolved.context
    if absent := resolution.not_running(context):
        message = (
            f"{len(absent)} granted {'tool is' if len(absent) == 1 else 'tools are'} not running:"
            f" {texts.listing(absent)}. Restart Toolbelt's servers with their plugin, or disable the plugin."
        )
        result.append(Warning_(code="not-running", message=message))
    for key in resolution.invalid(context):
        message = f"{key} is left out: {context.catalog.tools[key].schema_problem}. Correct the schema."
        result.append(Warning_(code="schema-invalid", message=message))
    result.extend(
        Warning_(code="options-conflict", message=conflict.warning)
        for conflict in resolution.conflicts_in(context, resolved.tools)
    )
    return tuple(result)


def _at_most(number: int | None, noun: str) -> str:
    return f"any number of {noun}s" if number is None else f"at most {texts.counted(number, noun)}"
