"""The documents of this version as pages: the files are those of the package, so that they fit what runs."""

from __future__ import annotations

import functools
import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import safestring
from django.views.decorators.http import require_safe

from toolbelt import locations
from toolbelt.web.kit import http, pieces

INDEX = "README.md"
# Files that are shown as they are, because documents link to them.
_TEXTS = frozenset({".conf", ".json", ".service", ".yaml", ".yml"})


@require_safe
def page(request: http.Request, document: str = INDEX) -> HttpResponse:
    """Show a document; 404 for what is none of them."""
    if document not in _names():
        raise Http404
    return render(request, "help/document.html", {"page": _Page(document)})


class _Page(pieces.Page):
    """A document: its title and its HTML, or the text of a file."""

    def __init__(self, name: str) -> None:
        text = (locations.DOCUMENTS / name).read_text(encoding="utf-8")
        self.is_index = name == INDEX
        if name.endswith(".md"):
            self.title, self.html = _rendered(name, text)
            self.text = ""
        else:
            self.title, self.html = posixpath.basename(name), ""
            self.text = text


@functools.cache
def _names() -> frozenset[str]:
    """Return the paths of everything that can be shown. What a request names is only compared with them."""
    folder = locations.DOCUMENTS
    return frozenset(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in {".md", *_TEXTS}
    )


def _rendered(name: str, text: str) -> tuple[str, str]:
    """Return the title of a document, and its HTML. HTML in the document is left out."""
    # Only this page needs it, and commands do not.
    import markdown_it

    markdown = markdown_it.MarkdownIt("commonmark").enable("table")
    for kind in ("html_block", "html_inline", "image"):
        markdown.add_render_rule(kind, _nothing)
    tokens = markdown.parse(text)
    title = ""
    for token, following in itertools.pairwise(tokens):
        if token.type == "heading_open":
            title = title or _plain(following)
            token.attrSet("id", _anchor(_plain(following)))
    for token in tokens:
        if token.children:
            token.children = [*_linked(token.children, name)]
    html = markdown.renderer.render(tokens, markdown.options, {})
    # The renderer escapes texts, and its rules for HTML and images write nothing.
    return title or name, safestring.mark_safe(html)  # noqa: S308


def _nothing(*_: Any) -> str:
    return ""


def _plain(token: Any) -> str:
    return "".join(child.content for child in token.children or () if child.type != "html_inline")


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as links in documents name it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _linked(tokens: Sequence[Any], name: str) -> Iterator[Any]:
    """Yield a line with links to documents as links to their pages, and without links to other files."""
    is_left_out = False
    for token in tokens:
        if token.type == "link_open":
            target = _target(str(token.attrGet("href")), name)
            is_left_out = not target
            token.attrSet("href", target)
        if token.type not in ("link_open", "link_close") or not is_left_out:
            yield token


def _target(link: str, name: str) -> str:
    """Return where a link of a document leads; empty for a file that is no document."""
    path, hash_, anchor = link.partition("#")
    if not path or path.startswith(("https://", "http://")):
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
    if target not in _names():
        return ""
    return reverse("web:document", args=[target]) + hash_ + anchor
