"""Tests that pages show control and bidirectional characters as code points, wherever the text is from."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from tests import fast_fixtures
from tests.web.conftest import READS
from toolbelt import models, testing
from toolbelt.web.kit import hidden_characters

ODD = "Pay \u202eecilA\u2066 \u2069now\x1b\x9b"
SHOWN = "Pay [U+202E]ecilA[U+2066] [U+2069]now[U+001B][U+009B]"
HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
ABOUT = {"title": ODD, "description": ODD}
BELT = {
    "plugins": [{"name": "acme.clock", "namespace": "clock", **ABOUT}],
    "tools": [
        {"key": "clock__now", "plugin": "acme.clock", "annotations": READS, **ABOUT},
        {"key": "shell", "title": ODD, "default_on": True},
    ],
    "toolkits": [{"key": "times", "members": ["clock__now"], "policy": ODD, **ABOUT}],
    "loadouts": [{"name": "small", "description": ODD, "tools": ["clock__now"]}],
    "sub_apps": [{"key": "desk", "tool_names": ["clock__now"], **ABOUT}],
    "agents": [
        {"key": "ada", "loadout": "small", "role": ODD, "tools_config": {"times": True}, **ABOUT},
        {"key": "bob", **ABOUT},
    ],
}
PAGES = [
    "/",
    "/agents/",
    "/agents/ada/",
    "/agents/ada/?open=all",
    "/agents/bob/",
    "/agents/ada/preview/",
    "/agents/ada/sessions/",
    "/agents/ada/history/",
    "/agents/ada/connect/",
    "/agents/ada/settings/",
    "/compare/?one=ada&other=bob",
    "/matrix/",
    "/toolkits/",
    "/toolkits/times/",
    "/toolkits/times/edit/",
    "/tools/",
    "/tools/clock__now/",
    "/loadouts/",
    "/loadouts/small/",
    "/loadouts/small/edit/",
    "/sub-apps/",
    "/sub-apps/desk/",
    "/sub-apps/desk/edit/",
    "/plugins/",
    "/plugins/acme.clock/",
    "/audit/",
    "/status/",
    "/admin/toolbelt/toolkit/",
    "/admin/toolbelt/agent/",
]
# Form fields keep their values unchanged, so that they can be submitted again.
_FIELDS = re.compile(r"<textarea.*?</textarea>|<input[^>]*>", re.DOTALL)


@pytest.mark.django_db
@pytest.mark.parametrize("address", PAGES)
def test_no_page_contains_raw_control_or_bidirectional_characters(address: str, admin_client: Client) -> None:
    fast_fixtures.stored("hidden", lambda: testing.RowsWorld().load(BELT, lenient=True))

    response = admin_client.get(address)

    assert response.status_code == 200
    text = html.unescape(_FIELDS.sub("", response.content.decode()))
    assert [text[match.start() - 60 : match.end() + 20] for match in HIDDEN.finditer(text)] == []
    assert int(response.headers["Content-Length"]) == len(response.content)


@pytest.mark.django_db
def test_hidden_characters_are_shown_as_code_points(admin_client: Client) -> None:
    fast_fixtures.stored("hidden", lambda: testing.RowsWorld().load(BELT, lenient=True))

    for address in (
        "/toolkits/",
        "/toolkits/times/",
        "/sub-apps/desk/",
        "/plugins/",
        "/agents/",
        "/admin/toolbelt/toolkit/",
    ):
        assert SHOWN in html.unescape(admin_client.get(address).content.decode()), address


@pytest.mark.django_db
def test_form_fields_keep_hidden_characters_unchanged(admin_client: Client) -> None:
    fast_fixtures.stored("hidden", lambda: testing.RowsWorld().load(BELT, lenient=True))
    toolkit = models.Toolkit.objects.get(key="times")

    for address in ("/toolkits/times/edit/", f"/admin/toolbelt/toolkit/{toolkit.pk}/change/"):
        assert ODD in html.unescape(admin_client.get(address).content.decode()), address


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<p>a\u202eb</p>", "<p>a[U+202E]b</p>"),
        ('<p title="a\u202e" data-x="\u202e">', '<p title="a[U+202E]" data-x="\u202e">'),
        ("<p aria-label='a > \u202e'>b\u202e", "<p aria-label='a > [U+202E]'>b[U+202E]"),
        (
            "<textarea name=a>\u202e<p>\u202e</textarea>\u202e",
            "<textarea name=a>\u202e<p>\u202e</textarea>[U+202E]",
        ),
        ('<input title="x" value="\u202e">', '<input title="x" value="\u202e">'),
        ("<script>'\u202e'</script>", "<script>'\u202e'</script>"),
        ("a < b \u202e", "a < b [U+202E]"),
        # Invisible characters with a legitimate use: emoji sequences, variation selectors, soft hyphens.
        (
            "\U0001f469\u200d\U0001f4bb \u26a0\ufe0f so\u00adft \t\n\r",
            "\U0001f469\u200d\U0001f4bb \u26a0\ufe0f so\u00adft \t\n\r",
        ),
    ],
)
def test_only_displayed_text_and_attributes_are_rewritten(before: str, after: str) -> None:
    assert hidden_characters.page(before) == after


def test_malformed_html_is_rewritten_to_its_end() -> None:
    # With backtracking, this would take hours.
    page = hidden_characters.page('<a b="' * 2_000 + "\u202e" + "<textarea>" * 500)
    assert page.startswith('<a b="')
    assert page.endswith("<textarea>")
