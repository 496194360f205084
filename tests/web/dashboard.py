"""Helpers that send the dashboard's requests, with and without htmx, and read what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from toolbelt import models
from toolbelt.core import agents
from toolbelt.store import snapshots

HTMX = {"HX-Request": "true"}
ACCESS = "/agents/ada/"


def sections(page: Any) -> dict[str, Any]:
    """Return the sections of an Access page by id, in page order."""
    return {section.id: section for group in page.groups for section in group.sections}


def post(browser: Client, address: str, *, htmx: bool = True, **fields: Any) -> Any:
    """Post a form: with htmx for a partial response, or without for a redirect."""
    return browser.post(address, fields, headers=HTMX if htmx else {})


def switch(browser: Client, toolkit: str, on: str, was: str, *, agent: str = "ada", **fields: Any) -> Any:
    """Set a switch; ``on`` and ``was`` are form values: true, false or unset."""
    return post(browser, f"/agents/{agent}/switches/{toolkit}/", on=on, was=was, **fields)


def override(browser: Client, tool: str, on: str, was: str, *, agent: str = "ada", **fields: Any) -> Any:
    """Set an override; ``on`` and ``was`` are form values: true, false or unset."""
    return post(browser, f"/agents/{agent}/overrides/{tool}/", on=on, was=was, **fields)


def stored_agent(agent: str = "ada") -> agents.Agent:
    """Return an agent as it is stored."""
    return snapshots.find(agent, None).agent


def latest_entry() -> models.AuditEntry:
    """Return the latest entry of the audit log."""
    return models.AuditEntry.objects.latest("id")


def text(response: Any) -> str:
    """Return the body of the response with whitespace collapsed."""
    return " ".join(response.content.decode().split())


def count_queries(function: Callable[[], Any]) -> int:
    """Return the number of queries that a function executes."""
    with CaptureQueriesContext(connection) as captured:
        function()
    return len(captured)
