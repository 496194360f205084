"""The editor of toolkits, with a preview of what the model sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from toolbelt.control.catalog import proposals
from toolbelt.core import catalog
from toolbelt.web.kit import entry_editor, entry_forms, filters, http, notices, responses, titles
from toolbelt.web.toolkits import detail, forms

# The name of a new toolkit in its preview.
_NAMELESS = "new_toolkit"


class Editor(entry_editor.Editor):
    """The editor of toolkits."""

    kind, form, template = "toolkit", forms.Toolkit, "toolkits/_form.html"
    about = "The preview shows what the model sees."

    def source(self, request: http.Request, stored: catalog.Catalog) -> catalog.Toolkit | None:
        """Return a toolkit of the tools that were selected in the list of tools; None if none were."""
        selected = [tool for tool in request.GET.getlist("tool")[: forms.MAX_ROWS] if tool in stored.tools]
        members = tuple(catalog.Member(tool=tool) for tool in dict.fromkeys(selected))
        return catalog.Toolkit(key="", members=members) if members else None

    def edit(self, request: http.Request, name: str) -> HttpResponse:
        """Show the form, unless the toolkit is defined in code or too large for the editor."""
        toolkit = self.get(name)
        refusal = forms.too_many(len(toolkit.members), len(toolkit.triggers))
        if toolkit.plugin:
            refusal = f"{name} is defined by the code of the plugin {toolkit.plugin}: change it there."
        if not refusal:
            return super().edit(request, name)
        responses.declare(request, reverse("web:toolkit", args=[name]))
        return responses.respond(request, notices.Notice(text=refusal, tone="refused"))

    def page(self, request: http.Request, form: entry_forms.EntryForm, seen: Mapping[str, Any]) -> _EditPage:
        """Return the form beside what the model receives of it."""
        return _EditPage(request, self, form, seen)

    def show(self, request: http.Request, form: entry_forms.EntryForm, **options: Any) -> HttpResponse:
        """Show the form; only the preview, if it is all that was asked for."""
        if not (request.htmx and request.POST.get("act") == "try"):
            return super().show(request, form, **options)
        page = self.page(request, form, options["seen"])
        form.set_choices(page.index.catalog)
        return render(request, "toolkits/_previewed.html", {"page": page})


class _EditPage(entry_editor.EditPage):
    """The form of a toolkit, beside what the model receives of it."""

    def __init__(
        self,
        request: http.Request,
        editor: entry_editor.Editor,
        form: entry_forms.EntryForm,
        seen: Mapping[str, Any],
    ) -> None:
        super().__init__(editor, form, seen)
        trial = filters.read(forms.Trial(request.POST if request.method == "POST" else request.GET))
        key = _NAMELESS if form.is_new else form.entry_name
        entry = {name: value for name, value in form.entry().items() if value is not None}
        self.index = proposals.preview_access("toolkit", key, entry, trial["whose"])
        self.preview = detail.Preview(self.index, self.index.catalog.toolkits[key], trial)
        form.tried = self.preview.triggers  # type: ignore[attr-defined]
        self.message = trial["message"]
        self.whose = detail.agent_choices(titles.agent_options(), trial["whose"])
