"""The instructions of a server, on its page and in the review, and what an operator does about them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from toolbelt.control.people import rights
from toolbelt.control.servers import instructions
from toolbelt.web.kit import forms as kit
from toolbelt.web.kit import http, notices, pieces, responses, texts, titles, words

MAX_FLAG_LENGTH = 200
CHANGE = rights.permission("change", "plugin")
_USE = rights.permission("change", "toolkit")
_STATES: dict[instructions.State, tuple[str, str]] = {
    "none": ("none", "quiet"),
    "new": ("new", "accent"),
    "changed": ("changed", "warning"),
    "seen": ("seen", "quiet"),
}


class Decision(kit.Change):
    """What to do with the instructions that were shown: only mark them as seen, or copy them into a policy."""

    act = forms.ChoiceField(choices=[("see", "see"), ("use", "use")])
    shown = forms.CharField(required=False, max_length=100)
    toolkit = forms.CharField(required=False, max_length=64)

    def clean(self) -> dict[str, Any]:
        """Require a toolkit for the policy."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if data.get("act") == "use" and not data.get("toolkit"):
            raise forms.ValidationError("Choose the toolkit whose policy gets the text.")
        return data


class View(pieces.View):
    """The instructions of a server."""

    def __init__(self, found: instructions.Instructions) -> None:
        self.name = found.plugin.name
        self.title = titles.of(found.plugin)
        self.state, self.tone = _STATES[found.state]
        self.is_unseen = found.state in ("new", "changed")
        self.shown = found.shown
        self.text = texts.text(found.text) if found.text else None
        self.difference = texts.difference(found.lines) if found.lines and self.is_unseen else None
        self.is_without_earlier = found.state == "changed" and not found.lines
        self.flags = tuple(texts.pieces(words.cut(flag, MAX_FLAG_LENGTH)) for flag in found.flags)
        self.toolkits = tuple((kit_.key, titles.of(kit_)) for kit_ in found.toolkits)


@require_POST
@permission_required(CHANGE, raise_exception=True)
def decide(request: http.Request, plugin: str) -> HttpResponse:
    """Mark the instructions of a server as seen, or use them as policy. Findings require a confirmation."""
    responses.declare(request, reverse("web:plugin", args=[plugin]))
    data = Decision(request.POST).checked()
    write, shown, toolkit = responses.write(request, data), data["shown"], data["toolkit"]
    label = titles.label("plugin", plugin)
    if data["act"] == "see":
        change = instructions.see(write, plugin, shown)
        return responses.respond_changed(request, change, f"The instructions of {label} are marked as seen")
    if not request.user.has_perm(_USE):
        raise PermissionDenied
    found = instructions.find(plugin)
    if found.flags and not data["confirm"]:
        fields = [("act", "use"), ("shown", shown), ("toolkit", toolkit)]
        return responses.ask(
            request,
            f"Use the instructions of {label} as policy?",
            "Use as policy",
            [
                "The policy is sent to every model that has the toolkit. Check these findings first.",
                *found.flags,
            ],
            fields,
            dangerous=True,
        )
    change = instructions.use(write, plugin, shown, toolkit)
    where = titles.label("toolkit", toolkit)
    text = f"The instructions of {label} are part of the policy of {where}."
    detail = "They are your text now: what the server states later does not change it."
    return responses.respond(
        request, notices.Notice(text=text, detail=detail, undo=change.entry, whole=True), change.effect
    )
