"""Tests that the help page explains every state and reason."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from tests.web import dashboard
from toolbelt.core import rules
from toolbelt.core.rules import reasons

pytestmark = pytest.mark.django_db


def test_every_rule_and_reason_code_is_explained(viewer: Client) -> None:
    html = unescape(dashboard.text(viewer.get("/help/")))
    explained = re.findall(r'<li> <p class="layer-asks">.*?</li>', html)
    codes: set[str] = set()
    for rule, text in zip(rules.RULES, explained, strict=True):
        assert f'>{rule.number}</span>{rule.text}</p> <p class="state"' in text
        every = re.findall(
            r"<dt><code>(.+?)</code></dt><dd>.+?\. <span .+?To change it: </span>.+?</span></dd>", text
        )
        assert len(every) == text.count("<dt>") > 0
        codes |= set(every)
    assert codes == set(reasons.CODES)


def test_states_shortcuts_and_documents_are_listed(viewer: Client) -> None:
    html = dashboard.text(viewer.get("/help/"))
    for word in (
        "On request",
        "destructive",
        "<kbd>/</kbd>",
        'href="/help/documents/semantics.md"',
        "data-shortcuts",
    ):
        assert word in html
