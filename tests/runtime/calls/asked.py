"""A tool about which a rule asks, and the calls of it that people approve."""

from __future__ import annotations

import datetime as dt
from typing import Any

from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.core import admitting
from toolbelt.core import call_approvals as values
from toolbelt.runtime import calls
from toolbelt.runtime.calls.incoming import RequestKey
from toolbelt.store import clock

RULE: dict[str, Any] = {
    "key": "over-500",
    "effect": "ask",
    "tools": ["kb__search", "shop__find"],
    "when": {"amount": {"exclusiveMinimum": 500}},
    "reason": "Refunds above 500 EUR need a person.",
}
# Every road to a tool: called, loaded, dispatched, by a subagent, and run by the agent's own program.
ROADS: dict[str, Any] = {
    "plugins": [{"name": "shop", "namespace": "shop"}],
    "tools": [{"key": "shop__find", "plugin": "shop"}],
    "toolkits": [{"key": "more", "members": ["kb__plain"]}],
    "agents": [
        {
            "key": "ada",
            "tools": ["kb__search", "kb__hold", "shop__find"],
            "allowed_toolkits": ["more"],
            "subagent_kinds": ["general"],
        }
    ],
}
BELT: dict[str, Any] = {
    **ROADS,
    "agents": [*ROADS["agents"], {"key": "bo", "tools": ["kb__search"]}],
    "gate_rules": [
        RULE,
        {"key": "not-9000", "effect": "deny", "when": {"amount": {"type": "number", "minimum": 9000}}},
    ],
}
REFUND = {"query": "order 12", "amount": 700}
ADA = RequestKey("ada")
OLIVE, PIA = writing.by("olive", via="screen"), writing.by("pia", via="screen")


def call(arguments: Any = REFUND, agent: str = "ada", **key: Any) -> Any:
    return calls.run(agent, "kb__search", arguments, **key)


def code(answer: Any) -> str:
    return answer.code if isinstance(answer, admitting.Refusal) else "ok"


def latest() -> values.Approval:
    return call_approvals.find(models.Approval.objects.latest("id").key)


def approve(by: writing.Write = OLIVE) -> values.Approval:
    approval = latest()
    return call_approvals.approve(by, approval.key, approval.shown)


def states() -> list[str]:
    return list(models.Approval.objects.order_by("id").values_list("state", flat=True))


def later(seconds: float) -> Any:
    return clock.stopped(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds))
