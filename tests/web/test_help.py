"""Does the page of help explain all that there is?"""

from __future__ import annotations

import pytest
from django.test import Client

from tests.web import acting
from toolbelt.core import reasons, rules

pytestmark = pytest.mark.django_db


def test_every_question_and_every_reason_code_is_explained(viewer: Client) -> None:
    page = viewer.get("/help/").context["page"]
    assert [layer.asks for layer in page.layers] == [one.question for one in rules.RULES]
    assert {code.name for layer in page.layers for code in layer.codes} == set(reasons.CODES)
    assert all(code.says and code.way_out for layer in page.layers for code in layer.codes)


def test_shortcuts_states_and_docs_stand_there(viewer: Client) -> None:
    html = acting.text(viewer.get("/help/"))
    for word in ("On request", "destructive", "<kbd>/</kbd>", "docs/semantics.md", "data-shortcuts"):
        assert word in html
