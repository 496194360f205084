"""Which letters are these bytes? The server's word is tried first, and is not always true."""

from __future__ import annotations

import codecs
import re

# Only encodings of the web. Python knows others that are none ("zip"), or whose decoding is slow or strange ("idna").
_ON_THE_WEB = re.compile(
    r"ascii|utf-(?:8|16|32)|iso8859-\d+|cp(?:125\d|866|874|932|949)|koi8-[ru]|gb\w+|big5|euc_\w+|shift_jis"
)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w.:-]{1,40})", re.IGNORECASE)
_SEARCHED = 4_096
# Browsers take these names to mean the larger set that contains them.
_MEANT = {"iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}


def decode(body: bytes, declared: str = "", *, is_html: bool = False, whole: bool = True) -> str:
    """Decode a body: by its byte order mark, as declared, as the page itself declares, as UTF-8.

    The first that fits all bytes is taken; if none does, the first of them, with a sign in place of each misfit. A
    body that is not ``whole`` may end within a letter.
    """
    said = [declared]
    if is_html and (match := _DECLARED.search(body[:_SEARCHED])):
        said.append(match.group(1).decode("ascii"))
    candidates = [name for mark, name in _MARKS if body.startswith(mark)]
    candidates += [known for one in said if (known := _known(one))]
    candidates.append("utf-8")
    for name in candidates:
        try:
            return codecs.getincrementaldecoder(name)("strict").decode(body, final=whole)
        except UnicodeDecodeError:
            continue
    return body.decode(candidates[0], errors="replace")


def _known(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    found = _MEANT.get(found, found)
    return found if _ON_THE_WEB.fullmatch(found) else ""
