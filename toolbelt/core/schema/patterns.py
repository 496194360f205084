"""Patterns of JSON Schema, which are ECMA-262, in the syntax of RE2.

A pattern is read as with ECMA-262's flag ``u``, and more leniently where it has one reading, as browsers do without the
flag: a lone brace, an escaped ``-``. So are a few forms that only other languages have: ``\\A``, ``\\z``, ``\\Z``,
``[[:alpha:]]``, ``(?i)`` at the start, ``(?P<name>…)``.

RE2 has no equivalent of lookaround, of backreferences, and of some Unicode properties.
"""

from __future__ import annotations

import re

# The largest number of repetitions that RE2 has.
_MAX_REPEATED = 1_000
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??")
_NO_MINIMUM = re.compile(r",\d+\}")
_PROPERTY = re.compile(r"\{(?:(?:General_Category|gc|(Script|sc))=)?(\w+)\}")
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")
_GROUP = re.compile(r"\(\?(?:P?<[\w$]{1,64}>|:|([ims]*)(?:-[ims]*)?:)")
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_HEXADECIMAL = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,8})\}|c([A-Za-z])")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
# A literal of JavaScript or PHP instead of its pattern: its slashes would be matched, so nothing could match.
_IN_SLASHES = re.compile(r"/(\^.*|.*\$)/[a-zA-Z]*", re.DOTALL)
_CONTROLS = {"0": 0, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_SPACES = r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
_NO_SPACES = (
    r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
# What a class contains for these escapes.
_CLASSES = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": _SPACES, "S": _NO_SPACES}
_ASSERTIONS = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\z", "Z": r"(?:\n?\z)"}
_ANY, _NOTHING = r"[\x{0}-\x{10ffff}]", r"[^\x{0}-\x{10ffff}]"
_BINARY_PROPERTIES = {"Any": r"\x{0}-\x{10ffff}", "ASCII": r"\x{0}-\x{7f}", "ASCII_Hex_Digit": "0-9A-Fa-f"}
_NO_BINARY_PROPERTIES = {"ASCII": r"\x{80}-\x{10ffff}"}
_CATEGORIES = {
    "Letter": "L",
    "Cased_Letter": "LC",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Mark": "M",
    "Combining_Mark": "M",
    "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P",
    "punct": "P",
    "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd",
    "Open_Punctuation": "Ps",
    "Close_Punctuation": "Pe",
    "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf",
    "Other_Punctuation": "Po",
    "Symbol": "S",
    "Math_Symbol": "Sm",
    "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk",
    "Other_Symbol": "So",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Line_Separator": "Zl",
    "Paragraph_Separator": "Zp",
    "Other": "C",
    "Control": "Cc",
    "cntrl": "Cc",
    "Format": "Cf",
    "Surrogate": "Cs",
    "Private_Use": "Co",
}


class UnsupportedPatternError(Exception):
    """RE2 has no equivalent of the pattern."""


class BrokenPatternError(Exception):
    """The pattern is not complete in any language: a parenthesis or a bracket is missing."""


def in_re2(pattern: str) -> str:
    """Return the pattern in the syntax of RE2. Raise UnsupportedPatternError or BrokenPatternError.

    RE2 may still refuse the result: it knows whether there is a property, and whether the pattern is too large.
    """
    if _IN_SLASHES.fullmatch(pattern):
        raise UnsupportedPatternError
    reading = _Reading(pattern)
    translated = reading.whole()
    if reading.is_unsupported:
        raise UnsupportedPatternError
    return translated


def is_broken(pattern: str) -> bool:
    """Return whether the pattern is not complete in any language, so that it is most likely a mistake."""
    try:
        _Reading(pattern).whole()
    except BrokenPatternError:
        return True
    return False


def _character(code: int) -> str:
    return f"\\x{{{code:x}}}"


class _Reading:
    """One reading of a pattern, from its start to its end. What RE2 lacks is read, too, because more may be broken."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._is_dot_all = False
        self._has_empty_class = False
        self.is_unsupported = False

    def whole(self) -> str:
        """Return the whole pattern."""
        translated, depth, is_repeatable = [], 0, False
        if flags := self._take(_FLAGS):
            self._is_dot_all = "s" in flags[1]
            translated.append(flags[0])
        while self._at < len(self._pattern):
            start = self._pattern[self._at]
            if quantifier := self._take(_QUANTIFIER):
                translated.append(self._repeated(quantifier, is_repeatable=is_repeatable))
                is_repeatable = False
                continue
            is_repeatable = True
            match start:
                case "(":
                    depth += 1
                    is_repeatable = False
                    translated.append(self._group())
                    continue
                case "\\":
                    is_repeatable = self._peek(1) not in _ASSERTIONS
                    translated.append(self._escape(in_class=False)[0])
                    continue
                case "[":
                    translated.append(self._class())
                    continue
            self._at += 1
            match start:
                case ")":
                    depth -= 1
                    if depth < 0:
                        raise BrokenPatternError
                    translated.append(")")
                case "|" | "^" | "$":
                    is_repeatable = False
                    translated.append(start)
                case ".":
                    translated.append(r"(?s:.)" if self._is_dot_all else r"[^\n\r\x{2028}\x{2029}]")
                case _:
                    # A bracket without its opening one is a character, but not if another language would read it as
                    # the end of the class before. ``{,5}`` is five characters here, and a quantifier in Python.
                    self.is_unsupported |= start == "]" and self._has_empty_class
                    self.is_unsupported |= start == "{" and bool(_NO_MINIMUM.match(self._pattern, self._at))
                    translated.append(self._literal(start))
        if depth:
            raise BrokenPatternError
        return "".join(translated)

    def _peek(self, ahead: int) -> str:
        return self._pattern[self._at + ahead : self._at + ahead + 1]

    def _take(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        match = expected.match(self._pattern, self._at)
        if match:
            self._at = match.end()
        return match

    def _unsupported(self) -> str:
        self.is_unsupported = True
        return ""

    def _literal(self, character: str) -> str:
        code = ord(character)
        return self._unsupported() if 0xD800 <= code <= 0xDFFF else _character(code)

    def _repeated(self, quantifier: re.Match[str], *, is_repeatable: bool) -> str:
        least, most = quantifier[1], quantifier[2]
        numbers = [int(number[:9]) for number in (least, most) if number]
        if (
            not is_repeatable
            or any(number > _MAX_REPEATED for number in numbers)
            or numbers != sorted(numbers)
        ):
            return self._unsupported()
        return quantifier[0]

    def _group(self) -> str:
        if group := self._take(_GROUP):
            if group[1]:
                # The dot is already translated.
                self.is_unsupported |= "s" in group[0]
                return group[0]
            return group[0] if group[0].endswith(":") else "("
        is_plain = self._peek(1) != "?"
        self._at += 1 if is_plain else 2
        return "(" if is_plain else self._unsupported()

    def _escape(self, *, in_class: bool) -> tuple[str, int | None]:
        """Return an escape, and the number of its character if it is one."""
        self._at += 1
        escaped = self._peek(0)
        if not escaped:
            raise BrokenPatternError
        if number := self._take(_HEXADECIMAL):
            return self._numbered(number)
        self._at += 1
        if escaped in _CLASSES:
            content = _CLASSES[escaped]
            return (content if in_class or len(content) == 2 else f"[{content}]"), None
        if escaped in "pP":
            content = self._property(escaped)
            return (content if in_class or content.startswith("\\p") else f"[{content}]"), None
        if escaped == "b" and in_class:
            return _character(8), 8
        if escaped in _ASSERTIONS and not in_class:
            return _ASSERTIONS[escaped], None
        if escaped in _CONTROLS and not (escaped == "0" and self._peek(0).isdigit()):
            return _character(_CONTROLS[escaped]), _CONTROLS[escaped]
        if escaped.isalnum():
            return self._unsupported(), None
        return self._literal(escaped), ord(escaped)

    def _numbered(self, number: re.Match[str]) -> tuple[str, int | None]:
        code = ord(number[4]) % 32 if number[4] else int(number[1] or number[2] or number[3], 16)
        if number[2] and 0xD800 <= code <= 0xDBFF and (low := self._take(_LOW_SURROGATE)):
            code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            return self._unsupported(), None
        return _character(code), code

    def _property(self, escaped: str) -> str:
        name = self._take(_PROPERTY)
        if name is None:
            return self._unsupported()
        known = _BINARY_PROPERTIES if escaped == "p" else _NO_BINARY_PROPERTIES
        if name[2] in _BINARY_PROPERTIES and "=" not in name[0]:
            return known.get(name[2]) or self._unsupported()
        return f"\\{escaped}{{{name[2] if name[1] else _CATEGORIES.get(name[2], name[2])}}}"

    def _class(self) -> str:
        self._at += 1
        start = self._at
        is_negated = self._peek(0) == "^"
        self._at += is_negated
        parts: list[str] = []
        while (following := self._peek(0)) != "]":
            if not following:
                raise BrokenPatternError
            text, low = self._class_atom()
            if self._peek(0) == "-" and self._peek(1) not in ("]", "") and low is not None:
                self._at += 1
                upper, high = self._class_atom()
                if high is None:
                    # A class is no end of a range, so the hyphen is a character.
                    text += _character(ord("-")) + upper
                elif high < low:
                    self.is_unsupported = True
                else:
                    text += "-" + upper
            parts.append(text)
        content = self._pattern[start : self._at]
        self._at += 1
        # The set operations of the flag ``v``.
        self.is_unsupported |= "[" in content and ("--" in content or "&&" in content)
        if not parts:
            self._has_empty_class = True
            return _ANY if is_negated else _NOTHING
        return f"[{'^' if is_negated else ''}{''.join(parts)}]"

    def _class_atom(self) -> tuple[str, int | None]:
        if self._peek(0) == "\\":
            return self._escape(in_class=True)
        if posix := self._take(_POSIX):
            return posix[0], None
        character = self._peek(0)
        if not character:
            raise BrokenPatternError
        self._at += 1
        return self._literal(character), ord(character)
