"""The events in the demo on the day that it is set up: a program declares its tools again, a person writes rules, and
agents make calls, some of which wait for a person.

All go through the functions that people, agents and their programs use, so that nothing is made up.
"""

from __future__ import annotations

import copy
from typing import Any

from toolbelt import processes
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries, ordering
from toolbelt.control.servers import client_plugins
from toolbelt.core import admitting, errors
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions

AGENT, PLUGIN = "support-desk", "helpdesk"
SESSION = "chat-today"
CHANGED = "refund_order"
# Each fails, for a reason that the call log shows.
_CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("tech-writer", "files__read", {"path": "notes/roadmap.md"}),
    ("assistant", "wikipedia", {"title": "Otter", "action": "summarise"}),
    ("kiosk", "slack__slack_post_message", {"channel_id": "C1", "text": "A visitor is waiting."}),
)
_WEEK = 7 * 24 * 3600
_RULES: tuple[dict[str, Any], ...] = (
    {
        "key": "refunds-over-50",
        "effect": "ask",
        "tools": ["helpdesk__refund_order"],
        "when": {"cents": {"exclusiveMinimum": 5000}},
        "reason": "Refunds above 50 EUR need a person.",
        "expires": _WEEK,
    },
    {
        "key": "merges",
        "effect": "ask",
        "tools": ["github__merge_pull_request"],
        "reason": "A person reads a pull request before it is merged.",
        "expires": _WEEK,
    },
    {
        "key": "no-pushes-to-main",
        "effect": "deny",
        "tools": ["github__push_files", "github__create_or_update_file", "github__delete_file"],
        "when": {"branch": {"enum": ["main", "master"]}},
        "reason": "Changes reach main by a pull request.",
    },
    {
        "key": "tickets-without-a-project",
        "effect": "deny",
        "tools": ["atlassian__jira_create_issue"],
        "when": {"project_key": {"enum": ["TEST", "TMP"]}},
        "reason": "Tickets in test projects are read by no one.",
        "observed": True,
    },
)
# What a rule asks about: the agent, the tool and its arguments, and what olive said, if anything.
_ASKED: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    (AGENT, "helpdesk__refund_order", {"order": "A-0977", "cents": 7450}, "yes"),
    (AGENT, "helpdesk__refund_order", {"order": "A-0981", "cents": 9900}, "Send it to the shop first."),
    (AGENT, "helpdesk__refund_order", {"order": "A-1042", "cents": 8250}, ""),
    (
        "release-captain",
        "github__merge_pull_request",
        {"owner": "acme", "repo": "shop", "pullNumber": 482, "merge_method": "squash"},
        "",
    ),
    (
        "generalist",
        "github__merge_pull_request",
        {"owner": "acme", "repo": "shop", "pullNumber": 479, "merge_method": "merge"},
        "",
    ),
)


def make() -> None:
    """Let the program of the support desk declare its tools again, write rules, and make calls that fail or wait.

    Do nothing in a database that is not the whole demo.
    """
    try:
        declared = client_plugins.declared(PLUGIN, AGENT)
    except errors.NotFound:
        return
    # The older version still runs beside the newer one: what is not declared for a day is withdrawn.
    for version in (declared, _without_limit(declared)):
        client_plugins.declare_from_program(AGENT, PLUGIN, version)
    with processes.command():
        for agent, tool, arguments in _CALLS:
            calls.run(agent, tool, arguments, session=SESSION)
        if _RULES[0]["key"] not in ordering.names("gate_rule"):
            _write_rules_and_ask()
        with calls.admitted(AGENT, "helpdesk__find_order", {"order": "A-1042"}, session=SESSION) as call:
            call.result({"order": "A-1042", "shipped": True})


def _write_rules_and_ask() -> None:
    """Write the rules, make calls that they ask about, and let a person decide about the first ones."""
    olive = writing.by("olive", via="screen")
    for rule in _RULES:
        entries.create(olive, "gate_rule", rule)
    for agent, tool, arguments, said in _ASKED:
        # The agent's own program runs the tools of its plugin; Toolbelt runs the others.
        is_own = tool.startswith(f"{PLUGIN}__")
        call = calls.Call(key=calls.RequestKey(agent, SESSION), tool=tool, arguments=arguments)
        answer = admissions.admit(call) if is_own else calls.answer_blocking(call)
        if not isinstance(answer, admitting.Refusal) or answer.approval is None:
            raise errors.Refused(f"No rule asked about the demo's call of {tool} by {agent}.")
        asked = call_approvals.find(answer.approval.key)
        if said == "yes":
            call_approvals.approve(olive, asked.key, asked.shown)
        elif said:
            call_approvals.reject(olive, asked.key, said)


def _without_limit(declared: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the declaration of a newer version of the program, which refunds any amount."""
    tools = copy.deepcopy(declared)
    for tool in tools:
        if tool["name"] == CHANGED:
            tool["description"] = tool["description"].replace(", up to 100 euros", "")
            tool["input_schema"]["properties"]["cents"].pop("maximum", None)
    return tools
