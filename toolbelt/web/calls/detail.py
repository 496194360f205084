"""The page of one call."""

from __future__ import annotations

import json

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control.access import access_index
from toolbelt.control.reports import usage
from toolbelt.web.calls import view_model
from toolbelt.web.kit import pieces, texts


def page(call: usage.Call, index: access_index.AccessIndex) -> pieces.View:
    """Return the page."""
    agents = {access.agent.key for access in index.agents}
    shown = view_model.line(call, index.catalog.tools, agents, view_model.period_since(call.at))
    shown.error = texts.text(call.error) if call.error else None
    shown.plugin = texts.visible(call.plugin)
    shown.plugin_url = (
        reverse("web:plugin", args=[call.plugin]) if call.plugin in index.catalog.plugins else ""
    )
    shown.session = texts.visible(call.session)
    shown.request_id = texts.visible(call.request_id)
    shown.arguments = (
        None
        if call.arguments is None
        else texts.text(json.dumps(call.arguments, indent=2, ensure_ascii=False, sort_keys=True))
    )
    others = {"view": view_model.LOG, "agent": call.agent, "tool": call.tool}
    shown.others_url = f"{reverse('web:calls')}?{urlencode(others)}"
    return shown
