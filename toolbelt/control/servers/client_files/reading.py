"""Reading of a client's file: JSON as people write it, TOML, YAML, a README's code, or a bundle. Errors name the line.

JSON may have comments, trailing commas, keys without quotes and other quotes, and the outer braces may be missing.
"""

from __future__ import annotations

import collections
import json
import re
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Never

from toolbelt.control.config import belt_texts
from toolbelt.core import errors, text_limits

MAX_CHARACTERS = 1_000_000
# In any of the encodings that are read.
MAX_BYTES = 4 * MAX_CHARACTERS
# Of a bundle's directory, which is read as a whole: about 20,000 files.
MAX_DIRECTORY_BYTES = 2_000_000
MAX_BLOCKS = 100
MANIFEST = "manifest.json"

_ZIP = b"PK\x03\x04"
_ZIP_END, _ZIP64 = b"PK\x05\x06", b"PK\x06\x07"
_ZIP_END_SIZE, _ZIP_COMMENT_SIZE = 22, 65_535
_BOMS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}

# A text that does not end, and a comment that does not, are matched as well, so that each place is read only once.
_TEXT = r'"(?:[^"\\\n]|\\.)*+"?'
_WRITTEN = re.compile(
    rf"{_TEXT}|'(?P<single>(?:[^'\\\n]|\\.)*+)'|[“”„](?P<curly>[^“”„\n]*+)[“”]"
    r"|(?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)|/\*.*"
    r"|(?<![\w$-])(?P<key>[A-Za-z_$][\w$-]*+)(?=\s*+:)",
    re.DOTALL,
)
_TRAILING_COMMA = re.compile(rf"{_TEXT}|(?P<comma>,)(?=\s*[}}\]])", re.DOTALL)
_POSITION = re.compile(r"(.*?) \(at line (\d+), column \d+\)|(.*?) \(at end of document\)", re.DOTALL)
_BEFORE = re.compile(r"(?:\s++|//[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_FRAGMENT = re.compile(r"""(?:"[^"\n]*+"|'[^'\n]*+'|[“”„][^“”„\n]*+[“”])\s*+:""")
_TABLE = re.compile(r"[ \t]*+\[\[?[ \t]*+[\w.\"' -]++\]\]?[ \t]*+(?:\#[^\n]*+)?(?:\r?\n|\Z)")
_ASSIGNMENT = re.compile(r"[ \t]*+[\w.\"-]++[ \t]*+=[ \t]*+[^\s=]")
_FENCE = re.compile(r"[ \t]*+(?:>[ \t]*+)?(?P<fence>`{3,}|~{3,})")
_UNREADABLE_BUNDLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


def text_of(file: BinaryIO) -> str:
    """Return the text of a file, or of the manifest in a bundle. Raise errors.Invalid if it has none."""
    start = file.read(MAX_BYTES + 1)
    if start.startswith(_ZIP):
        return _manifest(file)
    if len(start) > MAX_BYTES:
        raise _too_long()
    encoding = next((name for bom, name in _BOMS.items() if start.startswith(bom)), "")
    if not encoding and b"\0" in start[:4]:
        encoding = "utf-16-be" if start[:1] == b"\0" else "utf-16-le"
    for name in (encoding,) if encoding else ("utf-8-sig", "cp1252"):
        try:
            return start.decode(name)
        except UnicodeDecodeError:
            continue
    raise errors.Invalid.of("The file is not UTF-8, UTF-16 or Windows-1252: save it as UTF-8.")


def candidates(text: str) -> Iterator[str]:
    """Yield the texts in which servers may be: the whole one, or each block of code of a README, at its lines."""
    if text[_start(text) : _start(text) + 1] in ("{", "[") or ("```" not in text and "~~~" not in text):
        yield text
        return
    block: list[str] | None = None
    opened, blocks = "", 0
    for number, line in enumerate(text.splitlines()):
        match = _FENCE.match(line)
        if block is None and match is not None and blocks < MAX_BLOCKS:
            opened, block, blocks = match["fence"], [""] * (number + 1), blocks + 1
        elif block is not None and match is not None and match["fence"].startswith(opened):
            yield "\n".join(block)
            block = None
        elif block is not None:
            block.append(line)
    if block is not None:
        yield "\n".join(block)


def read(text: str, *, is_toml: bool = False) -> dict[str, Any] | list[Any]:
    """Return the document of a file; raise errors.Invalid with the line and the reason."""
    if len(text) > MAX_CHARACTERS:
        raise _too_long()
    text = text.removeprefix("\ufeff")
    try:
        document = _read(text, is_toml)
        text_limits.check_document(document)
    except text_limits.LimitError as error:
        raise _invalid("", f"The file cannot be read: {error}.") from error
    if not isinstance(document, dict | list):
        raise _invalid("line 1", "The file must contain an object, {…}.")
    return document


def line_of(text: str, name: str) -> int:
    """Return the line where a server begins, by its name; 0 if it is not found."""
    written = "|".join(re.escape(json.dumps(name, ensure_ascii=escaped)[1:-1]) for escaped in (False, True))
    match = re.search(
        rf'"(?:{written})"\s*:|^[ \t]*\[[\w.]+\."?(?:{written})"?\]|^[ \t{{]*(?:{written})[ \t]*:',
        text,
        re.MULTILINE,
    )
    return text.count("\n", 0, match.start()) + 1 if match is not None else 0


def _read(text: str, is_toml: bool) -> Any:
    at = _start(text)
    if is_toml or _TABLE.match(text, at) or _ASSIGNMENT.match(text, at):
        text_limits.check_toml(text)
        return _read_toml(text)
    if at == len(text):
        raise _invalid("", "The file is empty.")
    if _FRAGMENT.match(text, at):
        return _read_json("{" + text.rstrip().rstrip(",") + "\n}")
    if text[at] in "{[":
        return _read_json(text)
    return _read_yaml(text)


def _start(text: str) -> int:
    """Return where a text begins behind comments."""
    match = _BEFORE.match(text)
    return match.end() if match is not None else 0


def _manifest(file: BinaryIO) -> str:
    """Return the manifest in a bundle, without reading more of it than that."""
    try:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _ZIP_END_SIZE - _ZIP_COMMENT_SIZE))
        end = file.read()
        at = [match.start() for match in re.finditer(re.escape(_ZIP_END), end)]
        sizes = [
            struct.unpack_from("<L", end, place + 12)[0] for place in at if place + _ZIP_END_SIZE <= len(end)
        ]
        if _ZIP64 in end or any(size > MAX_DIRECTORY_BYTES for size in sizes):
            raise errors.Invalid.of(f"The bundle has too many files. Unpack it, and import its {MANIFEST}.")
        with zipfile.ZipFile(file) as bundle, bundle.open(MANIFEST) as manifest:
            content = manifest.read(MAX_BYTES + 1)
    except KeyError as error:
        raise errors.Invalid.of(
            f"The file is a ZIP archive without {MANIFEST}, so it is no bundle."
        ) from error
    except _UNREADABLE_BUNDLE as error:
        raise errors.Invalid.of(
            f"The bundle cannot be read. Unpack it, and import its {MANIFEST}."
        ) from error
    if len(content) > MAX_BYTES:
        raise _too_long()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.Invalid.of(f"{MANIFEST} in the bundle is not UTF-8.") from error


def _read_yaml(text: str) -> Any:
    try:
        document = belt_texts.read(text)
    except errors.Invalid as error:
        return _read_object_in(text, error)
    if isinstance(document, str):
        return _read_object_in(text, _invalid("line 1", "The file must contain an object, {…}."))
    text_limits.check_document(document)
    return _with_text_keys(document)


def _read_object_in(text: str, error: errors.Invalid) -> Any:
    """Return the JSON object among words, as in an instruction; raise this error if there is none."""
    begin, end = text.find("{"), text.rfind("}") + 1
    if not -1 < begin < end:
        raise error
    try:
        return _read_json("\n" * text.count("\n", 0, begin) + text[begin:end])
    except errors.Invalid:
        raise error from None


def _with_text_keys(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _with_text_keys(item) for key, item in value.items()}
        case list():
            return [_with_text_keys(item) for item in value]
    return value


def _read_json(text: str) -> Any:
    # Comments and commas become spaces, so that lines stay the same.
    plain = _TRAILING_COMMA.sub(
        lambda match: " " if match["comma"] else match[0], _WRITTEN.sub(_as_json, text)
    )
    try:
        return json.loads(plain, object_pairs_hook=_object, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise _invalid(f"line {error.lineno}", f"This is not JSON: {error.msg}.") from error
    except RecursionError as error:
        raise _invalid("", "The file is nested too deeply.") from error
    except ValueError as error:
        raise _invalid(_line_of_repeated(text, str(error)), f"This is not JSON: {error}.") from error


def _as_json(match: re.Match[str]) -> str:
    """Return what a place of JSON5 is in JSON."""
    if match["comment"]:
        return re.sub(r"[^\n]", " ", match[0])
    if match["key"]:
        return f'"{match["key"]}"'
    if match["curly"] is not None:
        return json.dumps(match["curly"], ensure_ascii=False)
    if match["single"] is not None:
        inner = re.sub(
            r"\\.|\"", lambda found: {"\\'": "'", '"': '\\"'}.get(found[0], found[0]), match["single"]
        )
        return f'"{inner}"'
    return match[0]


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


def _too_long() -> errors.Invalid:
    message = (
        f"The file has more than {MAX_CHARACTERS:,} characters: it is not the configuration of a client."
    )
    return errors.Invalid.of(message)


def _invalid(path: str, message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path=path, message=message)])
