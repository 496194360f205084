"""Why a toolkit's tools, or one tool, are on or off for an agent, and the control that changes this."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone

from toolbelt import conf
from toolbelt.control.access import access_index
from toolbelt.control.reports import queries
from toolbelt.core import admitting, errors, gate_rules, keys, request_key, strict_json
from toolbelt.core.rules import resolution
from toolbelt.runtime.surfaces import explain
from toolbelt.web.kit import pieces, words

# The most tools that a decision lists by name.
MAX_NAMES = 6
# The longest arguments that can be tried, as JSON.
MAX_ARGUMENTS = 4_000
# The page that changes the origin of a decision: its kind, and the verb for operators with the permission.
_PAGES = {
    "plugin-failed": ("plugin", "Reconnect"),
    "plugin-disabled": ("plugin", "Turn on"),
    "not-running": ("plugin", "Open"),
    "loadout-disabled": ("loadout", "Edit"),
    "risk-denied": ("loadout", "Edit"),
    "loadout-plugin": ("loadout", "Edit"),
    "loadout-category": ("loadout", "Edit"),
    "pattern": ("loadout", "Edit"),
    "sub-app": ("sub_app", "Edit"),
    "default-on": ("tool", "Open"),
    "schema-invalid": ("tool", "Open"),
}
_SETTINGS = {"budget": "Raise the budget", "always-on": "Edit the agent", "initial": "Edit the agent"}
_REVIEWS = {"tool-unseen": "Approve this tool", "tool-changed": "Approve this version"}
_KINDS = {"sub_app": "sub-app"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The link to the page that changes a decision, or the form that flips it (``on``, from ``was``)."""

    words: str
    url: str
    on: str = ""
    was: str = ""


class Why(pieces.Page):
    """The decisions for a toolkit or a tool, each with its control. Raise errors.NotFound for any other key.

    ``may`` tells whether the reader may change entries of a kind; for "agent", this agent. ``arguments`` are those of a
    call to try on the gate rules, as JSON.
    """

    def __init__(
        self, access: queries.Access, key: str, *, may: Callable[[str], bool], arguments: str = ""
    ) -> None:
        stored = access.catalog
        toolkit, tool = stored.toolkits.get(key), stored.tools.get(key)
        if toolkit is None and tool is None:
            raise errors.NotFound("tool", key, stored.tools)
        members = access_index.members(stored, toolkit) if toolkit is not None else (key,)
        ordered = sorted(map(access.decision, members), key=_reason)
        self.agent = access.agent.key
        self.key = key
        self.title = (toolkit.title if toolkit else tool.title if tool else "") or key
        self.is_tool = toolkit is None
        self.arguments = arguments[:MAX_ARGUMENTS]
        tried, self.problem = _tried(self.arguments)
        self.has_answers = tried is not None
        # The gate rules that concern calls of the tool.
        self.at_the_gate: Sequence[gate_rules.Step] = ()
        # Why the arguments do not fit the tool.
        self.misfits: Sequence[str] = ()
        if tool is not None and toolkit is None:
            if tried is not None:
                found = explain.why(request_key.RequestKey(self.agent), key, tried)
                misfits = found.problems[: admitting.MAX_NAMED]
                self.misfits = [f"{each.path or 'arguments'}: {each.message}" for each in misfits]
                self.at_the_gate = found.at_the_gate
            else:
                self.at_the_gate = gate_rules.explain(stored, access.agent, key, at=timezone.now())
        self.decisions = tuple(
            _Item(access, list(each), key if toolkit else "", may)
            for _, each in itertools.groupby(ordered, key=_reason)
        )


def _tried(text: str) -> tuple[Mapping[str, Any] | None, str]:
    """Return the arguments in a text, and what is wrong with it; none, and nothing, if it is empty."""
    if not text.strip():
        return None, ""
    try:
        arguments = strict_json.read_text(text, conf.API_BODY_DEPTH)
    except strict_json.UnreadableError as error:
        return None, f"The arguments cannot be read: {error}"
    if not isinstance(arguments, dict):
        return None, 'The arguments are a JSON object: write {"name": "value"}.'
    return arguments, ""


def _reason(decision: resolution.Decision) -> tuple[int, str, tuple[str, ...]]:
    # The origin of these reasons is the tool itself, so they are the same for several tools.
    is_shared = decision.code in ("tool-unseen", "tool-changed", "tool-retired", "default-on", "not-granted")
    return decision.rule_number, decision.code, () if is_shared else decision.origin


class _Item(pieces.View):
    """The decision that several tools share, with its control, and the further denials."""

    def __init__(
        self,
        access: queries.Access,
        decisions: Sequence[resolution.Decision],
        toolkit: str,
        may: Callable[[str], bool],
    ) -> None:
        decision = decisions[0]
        origin = decision.origin
        newest = access.switched.get(origin.name) if origin.kind in ("switch", "override") else None
        context = access.surface.resolution.context
        # The denials that all of these tools share.
        shared = set.intersection(
            *({denial[1:] for denial in resolution.denials(context, each.tool)} for each in decisions)
        )
        further = [
            denial
            for denial in resolution.denials(context, decision.tool)
            if denial[1:] in shared and denial.code != decision.code
        ]
        self.decision = decision
        self.tools = tuple(decision.tool for decision in decisions[:MAX_NAMES])
        self.more = len(decisions) - MAX_NAMES
        self.newest = newest
        self.control = _control(access, decision, toolkit, may)
        # The denials that would remain without the first one.
        self.denials = [(denial, _control(access, denial, toolkit, may)) for denial in further]


def _control(
    access: queries.Access, decision: resolution.Decision, toolkit: str, may: Callable[[str], bool]
) -> Control | None:
    """Return the link or the flip that changes the decision; None if the reader may use neither."""
    page_link = _origin_link(access, decision, may)
    return _flip_button(access, decision, toolkit) if page_link is None and may("agent") else page_link


def _origin_link(
    access: queries.Access, decision: resolution.Decision, may: Callable[[str], bool]
) -> Control | None:
    """Return the link to the page that changes the decision's origin; None for a switch or an override."""
    code, name, agent = decision.code, decision.origin.name, access.agent.key
    if code == "loaded":
        return _link("Open its sessions", "sessions", agent)
    if code in _SETTINGS or (code == "risk-denied" and decision.origin.kind == "agent"):
        return _link(
            _SETTINGS.get(code, "Edit the agent") if may("agent") else "Open the settings", "settings", agent
        )
    plugin = access.catalog.tools[decision.tool].plugin
    if code in ("tool-unseen", "tool-changed", "tool-retired") and plugin:
        is_review = code in _REVIEWS and may("tool")
        return _link(
            _REVIEWS[code] if is_review else f"Open plugin {plugin}", "plugin", plugin, anchor="#review"
        )
    if code != "blocked" and code not in _PAGES:
        return None
    kind, verb = (decision.origin.kind, "Unblock") if code == "blocked" else _PAGES[code]
    is_stored = kind != "loadout" or keys.fold(name) in access.catalog.loadouts
    verb = verb if may(kind) and is_stored else "Open"
    return _link(f"{verb} {_KINDS.get(kind, kind)} {name}", f"edit_{kind}" if verb == "Edit" else kind, name)


def _link(text: str, view: str, name: str, anchor: str = "") -> Control:
    return Control(words=text, url=reverse(f"web:{view}", args=[name]) + anchor)


def _flip_button(access: queries.Access, decision: resolution.Decision, toolkit: str) -> Control:
    """Return the switch or override that changes the decision, and its new value."""
    agent, origin = access.agent, decision.origin
    on: bool | None = decision.state != "active"
    if origin.kind in ("switch", "toolkit"):
        toolkit = origin.name
    elif not toolkit:
        toolkit = next((kit.key for kit in access.catalog.toolkits_of.get(decision.tool, ())), "")
    kind, key, target = "switch", toolkit, f"toolkit {toolkit}"
    if origin.kind == "override":
        kind, key, on = "override", origin.name, None
    elif not toolkit:
        kind, key, target = "override", decision.tool, "this tool"
    stored = (agent.overrides if kind == "override" else agent.switches).get(key)
    text = "Reset its override to default" if on is None else f"Turn {target} {'on' if on else 'off'}"
    return Control(
        words=text,
        url=reverse(f"web:{kind}", args=[agent.key, key]),
        on=words.form_value(on),
        was=words.form_value(stored),
    )
