"""What the words, marks and states on the pages mean.

The questions come from the core that asks them, so that the page cannot say otherwise; what their codes say is written
here, for people who have never seen one.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolbelt.core import rules
from toolbelt.web.kit import pieces

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
    )
