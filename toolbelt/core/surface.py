"""What exactly does the model see? (semantics: Levels, Policy, Directives, Revisions)

A surface is everything that the model gets for one request: the active tools, the policy text that belongs to
them, and the directive for the message. Equal content has an equal fingerprint, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbelt.core import budgets, conflicts, definitions, directives, meta_tools, policy, resolution, schema

MOST_NAMES = 50
TOKENIZER = "o200k_base"

Because = Mapping[str, resolution.Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Warning_:
    """Something that an operator should know of: ``code`` is stable, ``message`` a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Discoverable:
    """What could be had on request: how many tools, and the toolkits and plugins to name (at most 50 of each)."""

    count: int
    toolkits: tuple[str, ...]
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The answer to a question. ``tools`` are the active ones in key order, without Toolbelt's own
    ``meta_tools``; ``tool_choice`` holds for every step, the ``directive`` for the first one only.
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
        """Give the decision behind each active tool, by key."""
        return self.resolution.active

    @property
    def spent(self) -> budgets.Spent:
        """Say how many tools and tokens are active, against the agent's budget."""
        return self.resolution.spent

    @property
    def discoverable(self) -> Discoverable:
        """Work out what could be had on request (not part of the fingerprint; costs what it enumerates)."""
        count = 0
        toolkits: dict[str, None] = {}
        plugins: dict[str, None] = {}
        for decision in self.resolution.discoverable():
            count += 1
            if decision.code == "loadable":
                toolkits[decision.origin.name] = None
            elif decision.code == "pattern":
                plugins[self.resolution.standing.catalog.tools[decision.tool].plugin or decision.tool] = None
        return Discoverable(
            count=count,
            toolkits=tuple(sorted(toolkits)[:MOST_NAMES]),
            plugins=tuple(sorted(plugins)[:MOST_NAMES]),
        )

    def content(self) -> dict[str, Any]:
        """Give what the model gets, as JSON: the part of the document that the fingerprint stands for."""
        sent = sorted((*self.tools, *self.meta_tools), key=lambda definition: definition.name)
        return {
            "active_tools": [definition.name for definition in sent],
            "tool_choice": self.tool_choice,
            "directive": self.directive
            and {
                "active_tools": list(self.directive.active_tools),
                "tool_choice": self.directive.tool_choice,
                "first_step_only": True,
            },
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
        """Give the surface as the JSON document of the wire (wire.md: A surface)."""
        found, spent = self.discoverable, self.spent
        return {
            "agent": self.agent,
            "session": self.session,
            "request_id": self.request_id,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            **self.content(),
            "discoverable": {
                "count": found.count,
                "toolkits": list(found.toolkits),
                "plugins": list(found.plugins),
            },
            "budget": {
                "tools": spent.tools,
                "tokens": spent.tokens,
                "tokenizer": TOKENIZER,
                "max_tools": spent.budget.max_tools if spent.budget else None,
                "max_tokens": spent.budget.max_tokens if spent.budget else None,
            },
            "warnings": [{"code": warning.code, "message": warning.message} for warning in self.warnings],
        }


def build(
    snapshot: resolution.Snapshot, message: str | None = None, *, revision: int | None = None
) -> Surface:
    """Answer a question: resolve the snapshot and put together what the model gets.

    ``message`` is the request's, sent with its first step only: without it there is no directive.
    """
    return of(budgets.resolve(snapshot), snapshot, message, revision=revision)


def of(
    resolved: budgets.Resolution,
    snapshot: resolution.Snapshot,
    message: str | None = None,
    *,
    revision: int | None = None,
) -> Surface:
    """Put together the surface of a snapshot that is already resolved."""
    stored, active = snapshot.catalog, resolved.active
    members = policy.active_members(stored, active)
    told = policy.build(stored, active, members)
    directive = directives.build(stored, members, active, message)
    tools = tuple([definitions.of(stored, key) for key in active])
    own = tuple(meta_tools.DEFINITIONS.values()) if may_load(resolved) else ()
    tool_choice: Literal["auto", "none"] = "auto" if tools or own else "none"
    return Surface(
        agent=snapshot.agent.key,
        session=snapshot.session.key if snapshot.session is not None else None,
        request_id=snapshot.request_id,
        revision=stored.number if revision is None else revision,
        fingerprint=_fingerprint(tools, own, tool_choice, told.text, directive),
        tools=tools,
        meta_tools=own,
        tool_choice=tool_choice,
        policy=told,
        directive=directive,
        warnings=_warnings(resolved),
        resolution=resolved,
    )


def may_load(resolved: budgets.Resolution) -> bool:
    """Say whether the agent gets the meta-tools: it has allowed toolkits, or something is discoverable.

    What the session loaded by name counts too: it was discoverable, and must be there to be unloaded.
    """
    standing = resolved.standing
    return (
        bool(standing.agent.allowed_toolkits)
        or bool(standing.tools_by_name or standing.plugins_by_name)
        or resolved.has_discoverable()
    )


def _fingerprint(
    tools: tuple[definitions.Definition, ...],
    own: tuple[definitions.Definition, ...],
    tool_choice: str,
    policy_text: str,
    directive: directives.Directive | None,
) -> str:
    digest = hashlib.sha256(b"".join([definition.digest for definition in (*tools, *own)]))
    focus = [list(directive.active_tools), directive.tool_choice] if directive else None
    digest.update(schema.canonical([len(tools), len(own), tool_choice, policy_text, focus]).encode())
    return "sha256:" + digest.hexdigest()


def _warnings(resolved: budgets.Resolution) -> tuple[Warning_, ...]:
    found = []
    spent = resolved.spent
    if resolved.deferred:
        found.append(
            Warning_(code="budget-deferred", message=f"The budget deferred {', '.join(resolved.deferred)}.")
        )
    if spent.is_passed and spent.budget is not None:
        found.append(
            Warning_(
                code="over-budget",
                message=f"{spent.tools} tools and {spent.tokens} tokens are active; the budget is "
                f"{_most(spent.budget.max_tools)} tools and {_most(spent.budget.max_tokens)} tokens.",
            )
        )
    standing = resolved.standing
    for tool in sorted(conflicts.concerned(standing.catalog, standing.agent).intersection(resolved.active)):
        conflict = resolution.options(standing, tool)[1]
        if conflict is not None:
            found.append(Warning_(code="options-conflict", message=conflict.warning))
    return tuple(found)


def _most(number: int | None) -> str:
    return "any number of" if number is None else f"at most {number}"
