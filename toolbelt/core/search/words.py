"""The words of names, texts and queries: split, folded and stemmed.

Identifiers are split (``snake_case``, ``camelCase``, digits), accents are folded, and scripts that write no spaces give
their pairs of characters, so that a query finds a part of a phrase.
"""

from __future__ import annotations

import functools
import re
import unicodedata

# Chinese, Japanese and Korean.
_UNSPACED = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(
    rf"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[{_UNSPACED}]+|[^\W\d_a-zA-Z{_UNSPACED}]+",
)
_LETTERS = str.maketrans(
    {chr(code): unicodedata.normalize("NFD", chr(code))[0] for code in range(0xC0, 0x250)}
    | {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "æ": "ae", "Æ": "AE", "œ": "oe"}
    | {"Œ": "OE", "ð": "d", "þ": "th", "ß": "ss", "’": "'"}
)
_STOP_WORDS = """
a about above able accomplish accordingly additionally after again ahead all also although am an and another any anyone
anything appreciate are aren around as ask asked assist assistance at available aware back basically be because been
before being below best better between both but by can cannot come could couldn curious currently d definitely did didn
different do does doesn doing don done down during each either else ensure especially etc even ever every everything
exactly excited explore few finally first firstly following for from further furthermore get getting give given go
going good got great guess guide had hadn happen has hasn have haven having he help helpful her here hers hey hi hello
him his hoping how however i idea if im in instead interested into is isn it its itself just keep kind kindly know last
lastly least let lets like ll look looking lot love m made main make making many may maybe me might mine moment more
moreover most much must my myself need needed needs next no nor not now obtain of off ok okay on once one only onto or
other others otherwise our ours out over own particular per perhaps please plus possible possibly pretty prefer provide
provided providing purpose quick quickly quite rather re really recently regarding relevant require s said same say
second secondly see seem shall she should show since so some someone something soon sort specific specifically still
stuff such sure t take task tell than thank thanks that the their theirs them then there these they thing things think
third thirdly this those though through to today together too tool tools toward try trying two understand until up upon
us use used useful using ve various very via wanna want wanted wants was wasn way we well were what whatever when where
whether which while who whole whom whose why will willing wish with within without won wonder wondering would wouldn y
yes yet you your yours yourself
"""
STOP = frozenset(_STOP_WORDS.split())
# The first that fits is cut off; "ies" and "ied" become "y", "sses" becomes "ss".
_CUT = (
    "ization isation ations ation ators ator ating ated ates ate izing ized izes izer ize ions ion ings ing ments ment "
    "ers er ors or ies ied sses ness ally ly al ed es"
)
_ENDINGS = tuple(_CUT.split())
_PUT = {"ies": "y", "ied": "y", "sses": "ss"}


def fold(text: str) -> str:
    """Return the text without accents and in the common forms of its characters."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text).translate(_LETTERS)


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a text or a name; unspaced scripts give their pairs of characters."""
    words = []
    for word in _WORD.findall(fold(text)):
        if word.isascii() or not "\u2e80" <= word[0] <= "\ufaff":
            words.append(word.casefold())
        else:
            words.extend(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    return words


@functools.lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the word without common English endings, so that ``listing`` finds ``list``."""
    if len(word) < 4 or not word.isascii():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)] + _PUT.get(ending, "")
            break
    else:
        if word.endswith("s") and not word.endswith("ss"):
            word = word[:-1]
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
