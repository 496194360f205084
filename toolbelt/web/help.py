"""The help page: the questions come from the core, and the texts of their codes are here."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.core import rules
from toolbelt.web.kit import http, pieces, words

# The states that the questions answer with, in their order: 2 to 5 deny, and 6 to 9 grant.
_STATES = ("unavailable", *4 * ["denied"], *4 * ["active"], "discoverable", "dormant")
# The codes of each question's answers, with what they say and the way out.
_CODES: Mapping[int, Mapping[str, tuple[str, str]]] = {
    1: {
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
        "tool-unseen": ("new, and not reviewed yet", "approve it under Review"),
        "tool-changed": (
            "changed since it was approved",
            "review the difference under Review, and approve it again",
        ),
    },
    2: {
        "blocked": ("the tool, its plugin or one of its toolkits is blocked for everyone", "unblock it"),
    },
    3: {
        "switch-off": ("one of its toolkits is off", "turn that toolkit on, or reset it to default"),
    },
    4: {"override-off": ("its own override is off", "set the tool to On or Default")},
    5: {
        "loadout-disabled": ("a loadout of the agent disables it", "edit that loadout, or use another one"),
    },
    6: {
        "override-on": ("its own override is on", "set the tool to Off or Default"),
        "always-on": ("always on for this agent", "turn it off, or remove it from the always-on tools"),
        "sub-app": ("bound by a sub-app that embeds the agent", "turn it off, or edit the sub-app"),
    },
    7: {"switch-on": ("one of its toolkits is on", "turn off the tool or the toolkit")},
    8: {
        "initial": (
            "its toolkit is loaded in every session",
            "remove it from the agent's initial toolkits",
        ),
        "loaded": ("the session loaded it", "evict the session, or turn it off"),
    },
    9: {
        "loadout-plugin": ("the loadout includes its plugin", "edit the loadout, or turn it off"),
        "loadout-category": ("the loadout includes its category", "edit the loadout, or turn it off"),
        "default-on": ("on by default, for agents without a loadout", "turn it off, or assign a loadout"),
    },
    10: {
        "loadable": (
            "in a toolkit that the agent may load",
            "turn the toolkit on to make it available immediately",
        ),
        "pattern": (
            "a pattern of the loadout makes it available on request",
            "turn it on to make it available immediately",
        ),
        "budget": ("deferred by the agent's budget", "raise the budget, or turn off other tools"),
    },
    11: {"not-granted": ("nothing grants it", "turn on its toolkit or the tool")},
}


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page: the same for everyone."""
    layers = []
    for rule, state in zip(rules.RULES, _STATES, strict=True):
        codes = _CODES[rule.number]
        layers.append((rule, state, words.BLOCKED if "blocked" in codes else words.STATES[state], codes))
    return render(request, "help/help.html", {"page": pieces.View(layers=layers)})
