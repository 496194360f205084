"""What a change would have done to the recorded calls: the line on every preview and confirmation, and its table.

There is one address for all of them. It is sent the form that would make the change, with the address of that form, and
runs the view of that address in a transaction that is rolled back, with its checks and permissions.
"""

from __future__ import annotations

from django import forms
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_POST

from toolbelt.control import proofs
from toolbelt.control.config import belts
from toolbelt.core import errors
from toolbelt.web.kit import http, pieces, proved_forms, responses

# The most rows of the table.
MAX_ROWS = 100


class Proof(forms.Form):
    """The address of the form that would make the change; the other fields are those of that form."""

    proof_of = forms.CharField(max_length=2000)


class NothingToProveError(errors.Refused):
    """The view changed nothing, because the form is not valid, or everything is as it says."""


@require_POST
@responses.require_read("call_record")
def show(request: http.Request) -> HttpResponse:
    """Show what the change would have done: a part for htmx, else a page."""
    form = Proof(request.POST)
    match = proved_forms.find(form.cleaned_data["proof_of"]) if form.is_valid() else None
    if match is None:
        raise Http404("The address is not that of a change that is proved.")
    address = form.cleaned_data["proof_of"]

    def act() -> None:
        before = belts.revision()
        proved_forms.make(request, match, address)
        if belts.revision() == before:
            raise NothingToProveError("Nothing would change.")

    proof, refusal = None, ""
    try:
        proof = proofs.prove(act)
    except errors.ToolbeltError as error:
        refusal = str(error)
    page = Page(request, proof, refusal)
    return responses.show(request, page, "proofs/proof.html", "proofs/_proof.html")


class Page(pieces.Page):
    """A proof, or why there is none."""

    caveat = proofs.CAVEAT

    def __init__(self, request: http.Request, proof: proofs.Proof | None, refusal: str) -> None:
        self.proof, self.refusal = proof, refusal
        self.is_brief = bool(request.POST.get("brief"))
        rows = proof.rows if proof is not None else ()
        self.rows = [(row, proofs.WORDS[row.after]) for row in rows[:MAX_ROWS]]
        self.more = len(rows) - len(self.rows)
