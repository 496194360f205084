"""The page that proposes a smaller belt: the least that agents need, by their recorded calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control import least_privilege
from toolbelt.control.config import belt_effects, belt_texts
from toolbelt.control.people import rights
from toolbelt.core import errors
from toolbelt.core import least_privilege as least
from toolbelt.web import import_export
from toolbelt.web import proofs as proof_pages
from toolbelt.web.kit import fields, filters, http, pieces, responses, titles, words

# With more agents, the page asks for one: deciding all calls again takes too long for a request.
MAX_AGENTS = 50
_DAYS = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "365 days"}


class Choices(forms.Form):
    """For whom, by which calls, and what stays."""

    agent = forms.CharField(required=False, max_length=64)
    days = forms.ChoiceField(required=False, choices=list(_DAYS.items()))
    keep = fields.NameList()
    turn_off = forms.BooleanField(required=False)
    # Without it, the page loads the proposal once it is shown.
    show = forms.BooleanField(required=False)


@require_safe
@responses.require_read("call_record")
def page(request: http.Request) -> HttpResponse:
    """Show the choices, and with ``show`` what is proposed, with the preview of importing it: alone for htmx."""
    if not rights.may_propose(request.user):
        raise PermissionDenied
    criteria = filters.read(Choices(request.GET))
    shown = _Page(request, criteria)
    if criteria["show"] and not shown.has_too_many:
        shown = _Result(request, criteria)
    part = "proposals/_result.html" if shown.is_shown else ""
    return responses.show(request, shown, "proposals/page.html", part)


class _Page(pieces.Page):
    """The choices."""

    is_shown = False

    def __init__(self, request: http.Request, criteria: Mapping[str, Any]) -> None:
        agents, agent = titles.of_agents(request), criteria["agent"]
        if agent and agent not in agents:
            raise errors.NotFound("agent", agent, agents)
        self.period = int(criteria["days"] or least_privilege.DAYS)
        self.agents = pieces.choices(agents, agent, "All agents")
        self.days = pieces.choices(_DAYS, str(self.period))
        self.keep, self.turn_off = " ".join(criteria["keep"] or ()), bool(criteria["turn_off"])
        self.count = 1 if agent else len(agents)
        self.has_too_many = self.count > MAX_AGENTS
        self.result_url = filters.address(request.path, {**criteria, "keep": self.keep, "show": "yes"})


class _Result(_Page):
    """The choices, and what is proposed for them."""

    is_shown = True
    # A proposal is imported as a belt of Toolbelt itself.
    adopted = ""

    def __init__(self, request: http.Request, criteria: Mapping[str, Any]) -> None:
        super().__init__(request, criteria)
        self.problem, proposal = "", None
        try:
            proposal = least_privilege.propose(
                responses.write(request),
                [criteria["agent"]] if criteria["agent"] else (),
                days=self.period,
                keep=criteria["keep"] or (),
                turn_off=self.turn_off,
            )
        except errors.Invalid as error:
            self.problem = str(error)
        self.proposal = proposal
        proof = proposal.proof if proposal is not None else None
        self.report = None if proof is None else proof_pages.Page(request, proof, "")
        self.lines = [_Line(one) for one in proposal.agents] if proposal is not None else []
        self.checked, self.text = None, ""
        if proposal is not None and proposal.belt:
            self.text = belt_texts.write(proposal.belt, "yaml")
            self.checked = import_export.Checked(
                belt_effects.assess(responses.write(request), belt_texts.read(self.text))
            )


class _Line(pieces.View):
    """What is proposed for an agent: its steps, and the tools that stay without a call, by why."""

    def __init__(self, one: least_privilege.OfAgent) -> None:
        smaller = one.smaller
        self.agent, self.calls, self.smaller = one.agent, one.calls, smaller
        self.is_nothing = one.is_nothing
        self.exception = least_privilege.EXCEPTIONS[one.exception] if one.exception is not None else ""
        self.steps = [
            (least_privilege.STEPS[step.kind], step.names) for step in (smaller.steps if smaller else ())
        ]
        unused: dict[str, list[str]] = {}
        for tool, why in (smaller.unused if smaller else {}).items():
            unused.setdefault(least.WHYS[why], []).append(tool)
        self.unused = list(unused.items())
        self.stays = f"{words.tools(len(smaller.unused))} stay without a call" if unused and smaller else ""
