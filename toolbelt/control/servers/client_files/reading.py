"""Reading of a client's file: JSON, JSON with comments and trailing commas, or TOML. Errors name the line."""

from __future__ import annotations

import collections
import json
import re
import tomllib
from typing import Any, Never

from toolbelt.core import errors, text_limits

MAX_CHARACTERS = 1_000_000

# A text that does not end, and a comment that does not, are matched as well, so that each place is read only once.
_TEXT = r'"(?:[^"\\\n]|\\.)*+"?'
_COMMENT = re.compile(rf"{_TEXT}|(?P<comment>//[^\n]*|/\*.*?\*/)|/\*.*", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_TEXT}|(?P<comma>,)(?=\s*[}}\]])", re.DOTALL)
_POSITION = re.compile(r"(.*?) \(at line (\d+), column \d+\)|(.*?) \(at end of document\)", re.DOTALL)


def read(text: str, *, is_toml: bool) -> dict[str, Any]:
    """Return the document of a file; raise errors.Invalid with the line and the reason."""
    if len(text) > MAX_CHARACTERS:
        raise _invalid(
            "",
            f"The file has more than {MAX_CHARACTERS:,} characters: it is not the configuration of a client.",
        )
    try:
        if is_toml:
            text_limits.check_toml(text)
        document = _read_toml(text) if is_toml else _read_json(text)
        text_limits.check_document(document)
    except text_limits.LimitError as error:
        raise _invalid("", f"The file cannot be read: {error}.") from error
    if not isinstance(document, dict):
        raise _invalid("line 1", "The file must contain an object, {…}.")
    return document


def line_of(text: str, name: str) -> int:
    """Return the line where a server begins, by its name; 0 if it is not found."""
    written = "|".join(re.escape(json.dumps(name, ensure_ascii=escaped)[1:-1]) for escaped in (False, True))
    match = re.search(rf'"(?:{written})"\s*:|^[ \t]*\[\w+\."?(?:{written})"?\]', text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match is not None else 0


def _read_json(text: str) -> Any:
    # Comments and commas become spaces, so that positions stay the same.
    plain = _COMMENT.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]) if match["comment"] else match[0],
        text.removeprefix("\ufeff"),
    )
    plain = _TRAILING_COMMA.sub(lambda match: " " if match["comma"] else match[0], plain)
    try:
        return json.loads(plain, object_pairs_hook=_object, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise _invalid(f"line {error.lineno}", f"This is not JSON: {error.msg}.") from error
    except RecursionError as error:
        raise _invalid("", "The file is nested too deeply.") from error
    except ValueError as error:
        raise _invalid(_line_of_repeated(text, str(error)), f"This is not JSON: {error}.") from error


def _read_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _POSITION.fullmatch(str(error))
        line = match[2] if match is not None and match[2] else str(text.count("\n") + 1)
        # Without the part of the message that could quote the file.
        raise _invalid(
            f"line {line}", f"This is not TOML: {(match and (match[1] or match[3])) or error}."
        ) from error
    except RecursionError as error:
        raise _invalid("", "The file is nested too deeply.") from error
    except ValueError as error:
        # A number has too many digits.
        raise _invalid("", f"This is not TOML: {error}.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name, count in collections.Counter(names).items() if count > 1)
        raise ValueError(f"the key {repeated!r} is given twice in one object")
    return document


def _line_of_repeated(text: str, message: str) -> str:
    name = message.split("'")[1] if "'" in message else ""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if f'"{name}"' in line]
    return f"line {lines[-1]}" if lines else ""


def _no_number(word: str) -> Never:
    raise ValueError(f"{word} is not a number")


def _invalid(path: str, message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path=path, message=message)])
