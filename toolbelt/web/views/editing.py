"""What do the editors of loadouts, sub-apps and toolkits do alike? They read what was typed, and save it or show it
again.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from django.http import HttpRequest, HttpResponse, QueryDict

from toolbelt.control import proposals
from toolbelt.core import belts, catalog
from toolbelt.web import drafts
from toolbelt.web.views import saving

_D = TypeVar("_D", bound=drafts.Draft)
_D_contra = TypeVar("_D_contra", bound=drafts.Draft, contravariant=True)


class Shows(Protocol[_D_contra]):
    """Show the form of a draft; ``seen`` is the entry behind it as JSON, ``problems`` are by their place."""

    def __call__(
        self,
        request: HttpRequest,
        draft: _D_contra,
        *,
        new: bool,
        seen: str,
        problems: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> HttpResponse: ...


def _none(draft: drafts.Draft) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor(Generic[_D]):
    """The editor of one kind: ``home`` names the page of one, ``empty`` is the draft of a new one, ``of`` gives the
    draft of a stored one, and ``read`` what was typed over a draft.

    ``wrong`` says what of a draft cannot be read, and so not be saved; ``problems`` what is wrong with one that is
    still being written.
    """

    kind: proposals.Kind
    home: str
    form: Shows[_D]
    empty: _D
    of: Callable[[Any], _D]
    read: Callable[[QueryDict, str, _D], _D]
    wrong: Callable[[_D], Mapping[str, str]] = _none
    problems: Callable[[_D], Mapping[str, str]] = _none

    def new(self, request: HttpRequest) -> HttpResponse:
        """Show an empty form."""
        return self.form(request, self.empty, new=True, seen="{}")

    def create(self, request: HttpRequest) -> HttpResponse:
        """Make what was typed, or show what one of the form's buttons made of it."""
        draft = self.read(request.POST, "", self.empty)
        return self._save(request, draft, drafts.Wanted(draft.entry(), {}), new=True, seen="{}")

    def edit(self, request: HttpRequest, stored: Any) -> HttpResponse:
        """Show the form of what is stored."""
        seen = json.dumps(belts.entry(self.kind, stored), ensure_ascii=False)
        return self.form(request, self.of(stored), new=False, seen=seen)

    def save(self, request: HttpRequest, name: str, stored: catalog.Catalog) -> HttpResponse:
        """Change what differs from what the page showed, or show what one of the form's buttons made of it."""
        was = drafts.was(request.POST)
        naming = belts.KINDS[self.kind].named_by
        shown = self.of(belts.value(self.kind, {**was, naming: name}, stored))
        draft = self.read(request.POST, name, shown)
        seen = json.dumps(was, ensure_ascii=False)
        return self._save(request, draft, drafts.wanted(draft, shown, was), new=False, seen=seen)

    def _save(
        self, request: HttpRequest, draft: _D, wanted: drafts.Wanted, *, new: bool, seen: str
    ) -> HttpResponse:
        again = functools.partial(self._again, request, draft, new, seen)
        naming = belts.KINDS[self.kind].named_by
        if "act" in request.POST:
            return again(self.problems(draft) if draft.name else {}, 200)
        if not draft.name:
            return again({naming: f"Give it a {naming}."}, 422)
        if wrong := self.wrong(draft):
            return again(wrong, 422)
        return saving.save(request, self.kind, draft.name, wanted, new=new, home=self.home, again=again)

    def _again(
        self,
        request: HttpRequest,
        draft: _D,
        new: bool,
        seen: str,
        problems: Mapping[str, str],
        status: int,
    ) -> HttpResponse:
        return self.form(request, draft, new=new, seen=seen, problems=problems, status=status)
