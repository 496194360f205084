"""URI templates (RFC 6570): which URIs match one, in linear time, and what one expands to."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import re2

MAX_URI_LENGTH = 8_000
MAX_EXPRESSIONS = 20

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z0-9_.%]+(?:\*|:[1-9][0-9]{0,3})?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)
# What one value may contain: a simple one ends at the next delimiter of the URI.
_VALUE = r"[^/?#\s]+"
_OPERATORS = {
    "": _VALUE,
    "+": r"[^\s]+",
    "#": r"#[^\s]+",
    ".": rf"\.{_VALUE}",
    "/": rf"(?:/{_VALUE})+",
    ";": r"(?:;[^/?#;\s]*)*",
}


def problem(template: str) -> str | None:
    """Return why this cannot be used as a URI template, or None."""
    literal = _EXPRESSION.sub("", template)
    if "{" in literal or "}" in literal:
        return "Its uriTemplate has braces that do not match."
    expressions = _EXPRESSION.findall(template)
    if len(expressions) > MAX_EXPRESSIONS:
        return f"Its uriTemplate has more than {MAX_EXPRESSIONS} expressions."
    if not all(_VARIABLE.fullmatch(name) for _, names in expressions for name in names.split(",")):
        return "Its uriTemplate has an expression that is not in RFC 6570."
    if not _SCHEME.fullmatch(template):
        # Otherwise it would match the URIs of every server.
        return "Its uriTemplate does not start with a scheme, such as file:."
    if any(character.isspace() for character in literal):
        return "Its uriTemplate contains spaces."
    return None


def matches(template: str, uri: str) -> bool:
    """Return whether the template can expand to this URI."""
    if len(uri) > MAX_URI_LENGTH or problem(template):
        return False
    return _compiled(template).fullmatch(uri.encode(errors="replace")) is not None


def variables(template: str) -> frozenset[str]:
    """Return the names of a template's variables."""
    return frozenset(name for _, names in _EXPRESSION.findall(template) for name, _ in _names(names))


def expand(template: str, values: Mapping[str, str], unknown: str, unknown_path: str) -> str:
    """Return the template with these values, as they are.

    ``unknown`` stands for a value that is not known, and ``unknown_path`` for one that may contain delimiters.
    Parameters and fragments that are not known are left out.
    """

    def expanded(match: re.Match[str]) -> str:
        operator, names = match[1], _names(match[2])
        known = [(name, values[name]) for name, _ in names if name in values]
        if operator in (";", "?", "&"):
            pairs = ["=".join(pair) for pair in known]
            separator = ";" if operator == ";" else "&"
            return (operator + separator.join(pairs)) if pairs else ""
        if operator == "#":
            return ("#" + ",".join(value for _, value in known)) if known else ""
        texts = [
            values.get(name, unknown_path if operator == "+" or (operator == "/" and is_list) else unknown)
            for name, is_list in names
        ]
        if operator in (".", "/"):
            return "".join(operator + text for text in texts)
        return ",".join(texts)

    return _EXPRESSION.sub(expanded, template)


def _names(names: str) -> list[tuple[str, bool]]:
    """Return the variables of an expression, and whether each is a list."""
    return [(name.partition(":")[0].rstrip("*"), name.endswith("*")) for name in names.split(",")]


@functools.lru_cache(maxsize=1024)
def _compiled(template: str) -> Any:
    pattern, end = "", 0
    for match in _EXPRESSION.finditer(template):
        pattern += re2.escape(template[end : match.start()]) + _expression(*match.groups())
        end = match.end()
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern + re2.escape(template[end:]), options=options)


def _expression(operator: str, variables: str) -> str:
    if operator in _OPERATORS:
        return _OPERATORS[operator]
    names = "|".join(re2.escape(variable.partition(":")[0].rstrip("*")) for variable in variables.split(","))
    # A query variable may be missing; an exploded one may add other names.
    pair = r"[^&#\s]*" if "*" in variables else rf"(?:{names})=[^&#\s]*"
    return rf"(?:\?{pair}(?:&{pair})*)?" if operator == "?" else rf"(?:&{pair})*"
