"""What the words, marks and states on the pages mean.

The questions come from the core that asks them, so that the page cannot say otherwise; what their codes say is written
here, for people who have never seen one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolbelt.core import rules
from toolbelt.web.kit import pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Something that stands on the pages, and what it means. `shape` is that of a state, `mark` the tone of a badge."""

    name: str
    means: str
    shape: str = ""
    mark: str = ""


# What each question answers with: its state, and its codes with what they say and the way out.
_ANSWERS: Mapping[int, tuple[str, Mapping[str, tuple[str, str]]]] = {
    1: (
        "unavailable",
        {
            "plugin-failed": ("the plugin has failed", "check its error under Plugins, then refresh it"),
            "plugin-disabled": ("an operator turned the plugin off", "turn it on under Plugins"),
            "tool-retired": (
                "its plugin no longer offers it",
                "nothing to do: its settings and history are kept",
            ),
            "not-running": (
                "no running process can run it",
                "restart Toolbelt's servers with its plugin listed, or turn the plugin off",
            ),
            "tool-unseen": ("new, and not reviewed yet", "review it on its plugin's page"),
            "tool-changed": ("changed since it was approved", "review the difference and approve it again"),
        },
    ),
    2: (
        "denied",
        {"blocked": ("the tool, its plugin or one of its toolkits is blocked for everyone", "unblock it")},
    ),
    3: (
        "denied",
        {"switch-off": ("one of its toolkits is off", "turn that toolkit on, or reset it to default")},
    ),
    4: ("denied", {"override-off": ("its own override is off", "set the tool to On or Default")}),
    5: (
        "denied",
        {"loadout-disabled": ("a loadout of the agent disables it", "edit that loadout, or use another one")},
    ),
    6: (
        "active",
        {
            "override-on": ("its own override is on", "set the tool to Off or Default"),
            "always-on": ("always on for this agent", "turn it off, or remove it from the always-on tools"),
            "sub-app": ("bound by a sub-app that embeds the agent", "turn it off, or edit the sub-app"),
        },
    ),
    7: ("active", {"switch-on": ("one of its toolkits is on", "turn off the tool or the toolkit")}),
    8: (
        "active",
        {
            "initial": (
                "its toolkit is loaded in every session",
                "remove it from the agent's initial toolkits",
            ),
            "loaded": ("the session loaded it", "evict the session, or turn it off"),
        },
    ),
    9: (
        "active",
        {
            "loadout-plugin": ("the loadout includes its plugin", "edit the loadout, or turn it off"),
            "loadout-category": ("the loadout includes its category", "edit the loadout, or turn it off"),
            "default-on": ("on by default, for agents without a loadout", "turn it off, or assign a loadout"),
        },
    ),
    10: (
        "discoverable",
        {
            "loadable": (
                "in a toolkit that the agent may load",
                "turn the toolkit on to make it available immediately",
            ),
            "pattern": (
                "a pattern of the loadout makes it discoverable",
                "turn it on to make it available immediately",
            ),
            "budget": ("deferred by the agent's budget", "raise the budget, or turn off other tools"),
        },
    ),
    11: ("dormant", {"not-granted": ("nothing grants it", "turn on its toolkit or the tool")}),
}
_STATES = (
    Term(name="On", shape="active", means="The model receives the tool and may call it."),
    Term(
        name="On request",
        shape="discoverable",
        means="The model does not receive the tool, but may find and load it.",
    ),
    Term(
        name="Blocked",
        shape="denied",
        means="A rule denies the tool, for example because a switch is off. The agent cannot change that.",
    ),
    Term(name="Off", shape="dormant", means="Nothing grants the tool to this agent."),
    Term(
        name="Unavailable",
        shape="unavailable",
        means="No agent can use the tool: its plugin failed or is off, it was retired, or it awaits review.",
    ),
)
_MARKS = (
    Term(name="read-only", mark="good", means="The tool says that it changes nothing."),
    Term(name="writes", mark="warning", means="The tool changes things, and says that it destroys nothing."),
    Term(
        name="destructive",
        mark="danger",
        means="The tool may destroy things. A tool that states no hints counts as destructive.",
    ),
    Term(name="protected", mark="plain", means="Every change to this agent's tools requires confirmation."),
    Term(name="over budget", mark="warning", means="More tools are on than the agent's budget allows."),
    Term(
        name="deferred by budget",
        mark="warning",
        means="The budget moved whole toolkits to on request.",
    ),
    Term(name="conflict", mark="warning", means="Two sources set different options for one tool."),
)
_WORDS = (
    Term(name="Toolkit", means="A named bundle of tools with one switch, policy text and triggers."),
    Term(
        name="Switch",
        means="The setting of a toolkit for one agent: on, off or default. Off takes precedence over on.",
    ),
    Term(
        name="Override",
        means="The setting of a single tool for one agent: on, off or default. Default removes the override.",
    ),
    Term(
        name="Loadout",
        means="A profile for agents: which tools are included, discoverable or disabled.",
    ),
    Term(name="Session", means="One conversation of an agent, with everything that it has loaded."),
    Term(
        name="Surface",
        means="Everything that a model receives for one request: tools, policy text and directive.",
    ),
    Term(name="Tokens", means="The size of the tools' definitions in each request, in o200k tokens."),
    Term(
        name="Block for everyone",
        means="The emergency stop: denies a tool, toolkit or plugin to every agent immediately.",
    ),
)
_DOCS = (
    Term(name="docs/concepts.md", means="the model behind Toolbelt, and how a request is answered"),
    Term(name="docs/semantics.md", means="the eleven rules, with examples"),
    Term(name="docs/reference/reason-codes.md", means="reason codes, load statuses and warnings"),
    Term(name="docs/reference/commands.md", means="every command of manage.py"),
    Term(name="docs/reference/http-api.md", means="every operation of the HTTP API"),
    Term(name="docs/how-to/see-what-a-model-gets.md", means="the pages of one agent"),
    Term(name="docs/how-to/review-upstream-tools.md", means="approving tools of upstream servers"),
    Term(name="docs/how-to/run-in-production.md", means="settings, probes, metrics, pruning, backups"),
)


def page() -> pieces.View:
    """Fill the page: the same for everyone."""
    return pieces.View(
        layers=tuple(
            pieces.View(
                number=question.number,
                asks=question.question,
                state=_ANSWERS[question.number][0],
                codes=tuple(
                    pieces.View(name=name, says=says, way_out=way_out)
                    for name, (says, way_out) in _ANSWERS[question.number][1].items()
                ),
            )
            for question in rules.RULES
        ),
        states=_STATES,
        marks=_MARKS,
        words=_WORDS,
        docs=_DOCS,
    )
