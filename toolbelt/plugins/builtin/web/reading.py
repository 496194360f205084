"""Conversion of HTML to plain text: title, headings, lists and links, without anything that is hidden from readers."""

from __future__ import annotations

import html.parser
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass

MAX_TITLE, MAX_LINK = 300, 500
# A small page can contain many links, and each is written out with its host.
MAX_LINKS = 2_000
# Tags, and texts between them. A real page of a megabyte has a tenth of this; the limit bounds the cost of other pages.
MAX_PIECES = 300_000

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_PARAGRAPH_TAGS = (
    "address article aside blockquote details dl fieldset figure footer form header main nav ol p pre "
    "section table ul"
)
_PARAGRAPHS = frozenset(_PARAGRAPH_TAGS.split())
_LINES = ("br", "caption", "dd", "div", "dt", "figcaption", "hr", "legend", "li", "option", "summary", "tr")
_UNREAD = ("canvas", "iframe", "math", "object", "script", "style", "svg", "template")
_VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
# Their end tags may be omitted: a hidden element ends at the latest where the next one begins.
_OPEN_ENDED = ("dd", "dt", "li", "option", "p", "td", "th", "tr")
_HIDING_STYLE = re.compile(r"(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden)", re.IGNORECASE)

# Control, bidirectional and invisible characters, including the tag block, which can hide text from readers.
# The joiners of emoji and of some scripts (U+200C, U+200D) stay.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A page's title and text. ``is_complete`` is False if reading stopped before the end."""

    title: str
    text: str
    is_complete: bool = True


def strip_hidden(text: str) -> str:
    """Return the text without invisible characters, and with line feeds as line ends."""
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def read(page: str, url: str) -> Reading:
    """Return the title and text of a page from ``url``. Broken HTML is read as far as possible."""
    parser = _Reader(url)
    # The parser is not closed: closing takes quadratic time for a broken page. The final tag flushes the text before
    # it.
    is_complete = True
    try:
        parser.feed(page + "<p>")
    except _TooManyPiecesError:
        is_complete = False
    # Filtered at the end, because a page can also write characters as references such as &#8203;.
    title = " ".join(strip_hidden("".join(parser.title)).split())
    return Reading(title=title[:MAX_TITLE], text=strip_hidden(parser.lines.text()), is_complete=is_complete)


class _TooManyPiecesError(Exception):
    """The page has more tags and texts than the limit."""


class _Lines:
    """Collects text: spaces collapse, and no two lines in a row are empty."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._now: list[str] = []
        self._prefix = ""

    def add(self, text: str) -> None:
        words = " ".join(text.split())
        if not words:
            if text and self._now and not self._now[-1].endswith(" "):
                self._now.append(" ")
            return
        if not self._now:
            self._now.append(self._prefix)
            self._prefix = ""
        elif text[0].isspace() and not self._now[-1].endswith(" "):
            self._now.append(" ")
        self._now.append(words + (" " if text[-1].isspace() else ""))

    def add_as_it_is(self, text: str) -> None:
        first, *more = text.split("\n")
        self._now.append(first)
        for line in more:
            if "".join(self._now).strip():
                self.end()
            else:
                self.gap()
            self._now.append(line)

    def cell(self) -> None:
        if self._now:
            self.add(" | ")

    def begin(self, prefix: str) -> None:
        self.end()
        self._prefix = prefix

    def end(self) -> None:
        line = "".join(self._now).rstrip()
        self._now = []
        if line:
            self._lines.append(line)

    def gap(self) -> None:
        self.end()
        if self._lines and self._lines[-1] and not self._prefix:
            self._lines.append("")

    def text(self) -> str:
        self.gap()
        return "\n".join(self._lines).strip("\n")


class _Reader(html.parser.HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lines = _Lines()
        self.title: list[str] = []
        self._base = url
        self._link = ""
        self._links = 0
        self._in_title = False
        self._pieces = 0
        self._pre = 0
        self._unread, self._depth = "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._count()
        if self._unread:
            if tag != self._unread:
                return
            if tag not in _OPEN_ENDED:
                self._depth += 1
                return
            self._unread = ""
        attributes = {name: value or "" for name, value in reversed(attrs)}
        if tag in _UNREAD or _is_hidden(tag, attributes):
            if tag not in _VOID:
                self._unread, self._depth = tag, 1
            return
        self._place(tag)
        match tag:
            case "title":
                self._in_title = True
            case "base":
                self._base = self._resolved(attributes.get("href", "")) or self._base
            case "a":
                self._end_link()
                self._link = self._resolved(attributes.get("href", ""))
            case "img":
                self.lines.add(attributes.get("alt", ""))
            case "pre":
                self._pre += 1

    def handle_endtag(self, tag: str) -> None:
        self._count()
        if self._unread:
            if tag == self._unread:
                self._depth -= 1
                if not self._depth:
                    self._unread = ""
            return
        if tag == "title":
            self._in_title = False
        elif tag == "a":
            self._end_link()
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)
        if tag in _HEADINGS:
            self.lines.begin("")
            self.lines.gap()
        elif tag in _PARAGRAPHS:
            self.lines.gap()
        elif tag in _LINES:
            self.lines.begin("")

    def handle_data(self, data: str) -> None:
        self._count()
        if self._unread:
            return
        if self._in_title:
            self.title.append(data)
        elif self._pre:
            self.lines.add_as_it_is(data)
        else:
            self.lines.add(data)

    def _count(self) -> None:
        self._pieces += 1
        if self._pieces > MAX_PIECES:
            raise _TooManyPiecesError

    def _place(self, tag: str) -> None:
        """Begin a new line if a browser would."""
        if tag in _HEADINGS:
            self.lines.gap()
            self.lines.begin(_HEADINGS[tag])
        elif tag == "li":
            self.lines.begin("- ")
        elif tag in _PARAGRAPHS:
            self.lines.gap()
        elif tag in _LINES:
            self.lines.end()
        elif tag in ("td", "th"):
            self.lines.cell()

    def _end_link(self) -> None:
        if self._link and self._links < MAX_LINKS:
            self._links += 1
            self.lines.add(f" <{self._link}>")
        self._link = ""

    def _resolved(self, target: str) -> str:
        """Return the absolute address of a link, or an empty string if it does not lead to another page."""
        target = target.strip()
        if not target or target.startswith("#") or len(target) > MAX_LINK:
            return ""
        try:
            url = urllib.parse.urljoin(self._base, target)
            scheme = urllib.parse.urlsplit(url).scheme
        except ValueError:
            return ""
        return url if scheme in ("http", "https") and len(url) <= MAX_LINK and " " not in url else ""


def _is_hidden(tag: str, attributes: Mapping[str, str]) -> bool:
    # Many pages hide their body until a script has run.
    if tag in ("html", "body"):
        return False
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or _HIDING_STYLE.search(attributes.get("style", "")) is not None
    )
