"""Tests that the documents are pages of the dashboard, whose links work and whose text is only text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client

from tests.docs import pages
from toolbelt import locations
from toolbelt.web import documents

pytestmark = pytest.mark.django_db


def body(browser: Client, path: str) -> str:
    response = browser.get(path)
    assert response.status_code == 200, path
    return response.content.decode().split('<article class="card sheet document">')[1].split("</article>")[0]


def test_every_link_from_the_index_of_documents_opens(viewer: Client) -> None:
    to_read, read = ["/help/documents/"], set()
    while to_read:
        path = to_read.pop()
        html = body(viewer, path)
        read.add(path)
        for link in re.findall(r'href="(/[^"#]*)', html):
            if link not in read and link not in to_read:
                to_read.append(link)
    every = {f"/help/documents/{pages.name(page).removeprefix('docs/')}" for page in pages.every()
             if pages.name(page).startswith("docs/")}  # fmt: skip
    assert every - read - {"/help/documents/README.md"} == set()


def test_a_link_to_a_section_leads_to_its_heading(viewer: Client) -> None:
    html = body(viewer, "/help/documents/reference/commands.md")
    assert 'href="/help/documents/reference/errors.md#system-checks"' in html
    assert '<h2 id="system-checks">' in body(viewer, "/help/documents/reference/errors.md")


def test_headings_have_the_anchors_that_links_name() -> None:
    page = pages.ROOT / "docs/reference/belt.md"
    _, html = documents._rendered("reference/belt.md", page.read_text("utf-8"))
    assert set(re.findall(r'<h\d id="([^"]+)"', html)) == pages.anchors(page)


def test_a_file_that_a_document_links_to_is_shown_as_text(viewer: Client) -> None:
    assert '<pre tabindex="0">' in body(viewer, "/help/documents/deploy/compose.yaml")


@pytest.mark.parametrize(
    "name", ["../pyproject.toml", "how-to/../../README.md", "/etc/passwd", "missing.md", "how-to", "%00.md"]
)
def test_only_documents_are_shown(viewer: Client, name: str) -> None:
    assert viewer.get(f"/help/documents/{name}").status_code == 404


def test_documents_require_a_login(client: Client) -> None:
    assert client.get("/help/documents/concepts.md").status_code == 302


def test_html_and_scripts_in_a_document_are_left_out() -> None:
    text = (
        "# A <b>title</b>\n\n<script>alert(1)</script>\n\n<!-- note -->\n\n"
        "[a](javascript:alert(1)) <img src=x onerror=alert(1)> ![b](x.png) `<i>`\n\n| a |\n|---|\n| <i>c</i> |\n"
    )
    title, html = documents._rendered("x.md", text)
    assert title == "A title"
    assert not re.search(
        r"<(script|img|b|i)\b|alert\(1\)</|onerror|<!--", html.replace("[a](javascript:alert(1))", "")
    )
    assert "<code>&lt;i&gt;</code>" in html
    assert 'href="javascript' not in html


def test_a_message_points_to_the_document_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert locations.document("reference/errors.md") == "docs/reference/errors.md"
    assert (locations.DOCUMENTS / "reference/errors.md").is_file()
    monkeypatch.setattr(locations, "IS_CHECKOUT", False)
    assert Path(locations.document("reference/errors.md")) == locations.DOCUMENTS / "reference/errors.md"
