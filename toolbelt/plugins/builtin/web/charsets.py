"""Decoding of pages. The encoding that the server declares is tried first, but is not always right."""

from __future__ import annotations

import codecs
import re

# Only encodings used on the web. Python also has codecs that are not text encodings ("zip"), or that are slow ("idna").
_ON_THE_WEB = re.compile(
    r"ascii|utf-(?:8|16|32)|iso8859-\d+|cp(?:125\d|866|874|932|949)|koi8-[ru]|gb\w+|big5|euc_\w+|shift_jis"
)
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w.:-]{1,40})", re.IGNORECASE)
_MAX_SEARCHED = 4_096
# Browsers treat these names as the larger set that contains them.
_SUPERSETS = {"iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}


def decode(body: bytes, declared: str = "", *, is_html: bool = False, is_complete: bool = True) -> str:
    """Return the text of a body, decoded by its byte order mark, the server's or the page's declaration, or as UTF-8.

    The first encoding that can decode all bytes is used; if none can, the first, with replacement characters. A body
    that is not ``is_complete`` may end within a character.
    """
    declared_names = [declared]
    if is_html and (match := _DECLARED.search(body[:_MAX_SEARCHED])):
        declared_names.append(match.group(1).decode("ascii"))
    candidates = [name for mark, name in _BYTE_ORDER_MARKS if body.startswith(mark)]
    candidates += [codec for name_ in declared_names if (codec := _web_codec(name_))]
    candidates.append("utf-8")
    for name in candidates:
        try:
            return codecs.getincrementaldecoder(name)("strict").decode(body, final=is_complete)
        except UnicodeDecodeError:
            continue
    return body.decode(candidates[0], errors="replace")


def _web_codec(name: str) -> str:
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    codec = _SUPERSETS.get(codec, codec)
    return codec if _ON_THE_WEB.fullmatch(codec) else ""
