"""How is the page of help filled? With what stands on the other pages, and what it means.

The questions come from the core that asks them, so that the page cannot say otherwise; what their codes say is written
here, for people who have never seen one.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolbelt.core import questions
from toolbelt.web.presenters import help as presenters

# What each question answers with: its state, and its codes with what they say and the way out.
_ANSWERS: Mapping[int, tuple[str, Mapping[str, tuple[str, str]]]] = {
    1: (
        "unavailable",
        {
            "plugin-failed": ("the plugin has failed", "look at its error under Plugins, and refresh it"),
            "plugin-disabled": ("an operator switched the plugin off", "switch it on under Plugins"),
            "tool-retired": ("its plugin no longer offers it", "nothing: switches and history are kept"),
            "tool-unseen": ("new, and nobody has looked at it yet", "review it on its plugin's page"),
            "tool-changed": ("changed since it was approved", "review the difference, and approve it again"),
        },
    ),
    2: ("denied", {"blocked": ("stopped for everyone: the tool, its plugin or a toolkit", "lift the stop")}),
    3: (
        "denied",
        {"switch-off": ("a toolkit over it is off", "turn that toolkit on, or let it follow defaults")},
    ),
    4: ("denied", {"override-off": ("its own override is off", "set the tool to Inherit or On")}),
    5: (
        "denied",
        {"loadout-disabled": ("a loadout of the chain disables it", "change the loadout, or another one")},
    ),
    6: (
        "active",
        {
            "override-on": ("its own override is on", "set the tool to Inherit or Off"),
            "always-on": ("one of the agent's own tools", "turn it off, or take it from the agent"),
            "sub-app": ("bound by a sub-app that the agent serves", "turn it off, or change the sub-app"),
        },
    ),
    7: ("active", {"switch-on": ("a toolkit over it is on", "turn the tool off, or the toolkit")}),
    8: (
        "active",
        {
            "initial": (
                "its toolkit is loaded in every session",
                "take it from the agent's initial toolkits",
            ),
            "loaded": ("the session loaded it", "evict the session, or turn it off"),
        },
    ),
    9: (
        "active",
        {
            "loadout-plugin": ("the loadout names its plugin", "change the loadout, or turn it off"),
            "loadout-category": ("the loadout has its category", "change the loadout, or turn it off"),
            "default-on": ("on by default, for agents without a loadout", "turn it off, or give a loadout"),
        },
    ),
    10: (
        "discoverable",
        {
            "loadable": ("in a toolkit that the agent may load", "turn the toolkit on, to have it at once"),
            "pattern": ("a pattern of the loadout lets the agent find it", "turn it on, to have it at once"),
            "budget": ("the agent's budget put it off", "raise the budget, or turn something else off"),
        },
    ),
    11: ("dormant", {"not-granted": ("nothing grants it", "turn its toolkit on, or the tool")}),
}
_STATES = (
    presenters.Term(name="Active", shape="active", means="The model gets it, and may call it."),
    presenters.Term(
        name="Discoverable",
        shape="discoverable",
        means="The model does not get it, but may find and load it itself.",
    ),
    presenters.Term(
        name="Denied", shape="denied", means="Somebody said no. Nothing that an agent does can change that."
    ),
    presenters.Term(name="Dormant", shape="dormant", means="Nothing grants it. It exists, and that is all."),
    presenters.Term(
        name="Unavailable",
        shape="unavailable",
        means="It could not run, or it waits for a look; whoever has it.",
    ),
)
_MARKS = (
    presenters.Term(name="read-only", mark="good", means="The tool says that it changes nothing."),
    presenters.Term(
        name="writes", mark="warning", means="It changes things, and says that it destroys none."
    ),
    presenters.Term(
        name="destructive",
        mark="danger",
        means="It may destroy things. So counts a tool that says nothing of itself.",
    ),
    presenters.Term(
        name="protected", mark="plain", means="Every change of this agent asks for a second look."
    ),
    presenters.Term(
        name="over budget", mark="warning", means="More is active than the agent's budget allows."
    ),
    presenters.Term(
        name="deferred by budget",
        mark="warning",
        means="The budget took whole toolkits back; the agent may load them.",
    ),
    presenters.Term(name="conflict", mark="warning", means="Two sources hand one tool different options."),
)
_WORDS = (
    presenters.Term(
        name="Toolkit", means="A named bundle of tools with one switch, policy text and triggers."
    ),
    presenters.Term(
        name="Switch",
        means="Of a toolkit, for one agent: on, off, or following defaults. Any off beats any on.",
    ),
    presenters.Term(
        name="Override",
        means="Of a single tool, for one agent: On, Off, or Inherit, which deletes the override.",
    ),
    presenters.Term(
        name="Loadout",
        means="A profile that agents inherit: what comes into view, may be found, or is disabled.",
    ),
    presenters.Term(
        name="Session", means="One conversation of an agent, with the toolkits that it loaded on the way."
    ),
    presenters.Term(
        name="Surface",
        means="All that a model gets for one request: tools, policy text, and what to focus on.",
    ),
    presenters.Term(
        name="Tokens", means="What the tools' descriptions cost in each request, counted as o200k does."
    ),
    presenters.Term(
        name="Stop", means="The emergency stop: a tool, toolkit or plugin is off for every agent, at once."
    ),
)
_DOCS = (
    presenters.Term(
        name="docs/concepts.md", means="the things there are, and the way from a question to an answer"
    ),
    presenters.Term(name="docs/semantics.md", means="the eleven questions, exactly, with examples"),
    presenters.Term(name="docs/reference/reason-codes.md", means="codes, statuses of a load, warnings"),
    presenters.Term(name="docs/reference/commands.md", means="every command of manage.py"),
    presenters.Term(name="docs/reference/http-api.md", means="every operation of the HTTP API"),
    presenters.Term(name="docs/how-to/see-what-a-model-gets.md", means="the pages of one agent"),
    presenters.Term(
        name="docs/how-to/review-upstream-tools.md", means="approving what upstream servers offer"
    ),
    presenters.Term(
        name="docs/how-to/run-in-production.md", means="settings, probes, metrics, pruning, backups"
    ),
)


def page() -> presenters.HelpPage:
    """Fill the page: the same for everyone."""
    return presenters.HelpPage(
        layers=tuple(
            presenters.Layer(
                number=question.number,
                asks=question.asks,
                state=_ANSWERS[question.number][0],
                codes=tuple(
                    presenters.Code(name=name, says=says, way_out=way_out)
                    for name, (says, way_out) in _ANSWERS[question.number][1].items()
                ),
            )
            for question in questions.QUESTIONS
        ),
        states=_STATES,
        marks=_MARKS,
        words=_WORDS,
        docs=_DOCS,
    )
