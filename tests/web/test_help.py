"""Tests that the help page explains every state and reason."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.web import dashboard
from toolbelt.core import reasons, rules

pytestmark = pytest.mark.django_db


def test_every_rule_and_reason_code_is_explained(viewer: Client) -> None:
    page = viewer.get("/help/").context["page"]
    assert [rule for rule, *_ in page.layers] == list(rules.RULES)
    assert {code for *_, codes in page.layers for code in codes} == set(reasons.CODES)
    assert all(all(texts) for *_, codes in page.layers for texts in codes.values())


def test_states_shortcuts_and_documents_are_listed(viewer: Client) -> None:
    html = dashboard.text(viewer.get("/help/"))
    for word in ("On request", "destructive", "<kbd>/</kbd>", "docs/semantics.md", "data-shortcuts"):
        assert word in html
