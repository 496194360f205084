"""Helpers that do what an operator does in the dashboard, with and without htmx."""

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
    """Return the sections of an Access page by id, in the order in which they stand."""
    return {section.id: section for group in page.groups for section in group.sections}


def post(browser: Client, address: str, *, htmx: bool = True, **fields: Any) -> Any:
    """Send a form: to be answered in place, or to be led back."""
    return browser.post(address, fields, headers=HTMX if htmx else {})


def switch(browser: Client, toolkit: str, on: str, was: str, *, agent: str = "ada", **fields: Any) -> Any:
    """Set a switch: ``on`` and ``was`` as forms say them (true, false, unset)."""
    return post(browser, f"/agents/{agent}/switches/{toolkit}/", on=on, was=was, **fields)


def override(browser: Client, tool: str, on: str, was: str, *, agent: str = "ada", **fields: Any) -> Any:
    """Set an override."""
    return post(browser, f"/agents/{agent}/overrides/{tool}/", on=on, was=was, **fields)


def stored(agent: str = "ada") -> agents.Agent:
    """Look at what is stored of an agent."""
    return snapshots.find(agent, None).agent


def newest() -> models.AuditEntry:
    """Look at the newest entry of the log."""
    return models.AuditEntry.objects.latest("id")


def text(answer: Any) -> str:
    """Return the answer's text, with any run of space as one."""
    return " ".join(answer.content.decode().split())


def queries(act: Callable[[], Any]) -> int:
    """Count what an act asks the database."""
    with CaptureQueriesContext(connection) as asked:
        act()
    return len(asked)
