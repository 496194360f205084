"""Does the page of help explain all that there is?"""

from __future__ import annotations

import pytest
from django.test import Client

from tests.web import acting
from toolbelt.core import questions, reasons

pytestmark = pytest.mark.django_db


def test_every_question_and_every_reason_code_is_explained(viewer: Client) -> None:
    page = viewer.get("/help/").context["page"]
    assert [layer.asks for layer in page.layers] == [one.asks for one in questions.QUESTIONS]
    assert {code.name for layer in page.layers for code in layer.codes} == set(reasons.CODES)
    assert all(code.says and code.way_out for layer in page.layers for code in layer.codes)


def test_shortcuts_states_and_docs_stand_there(viewer: Client) -> None:
    html = acting.text(viewer.get("/help/"))
    for word in ("Discoverable", "destructive", "<kbd>/</kbd>", "docs/semantics.md", "data-shortcuts"):
        assert word in html
