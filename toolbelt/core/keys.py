"""Rules for names and keys.

OpenAI, Anthropic, Gemini, Bedrock and MCP must all accept a tool's key, so the rule is the widest that all of them
allow. A toolkit's key and a namespace contain no ``__``: the first ``__`` of a tool's key always ends its namespace,
and an imported tool can never clash with a toolkit's key.
"""

from __future__ import annotations

import hashlib
import re

SEPARATOR = "__"
MAX_LENGTH = 64
CALL = "call_tool"
RESERVED = frozenset({"list_toolkits", "load_tools", "unload_tools", "search_tools", CALL})

_KEY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")

_KEY_RULE = "starts with a letter or _, then letters, digits, _ or -, at most 64 characters"


def fold(name: str) -> str:
    """Return the form in which names are compared, ignoring case."""
    return name.casefold()


def tool_key_problem(key: str) -> str | None:
    """Return the problem of ``key`` as a tool's full key, or None."""
    if not _KEY.fullmatch(key):
        return f"{key!r} is not a tool's key: it {_KEY_RULE}."
    if fold(key) in RESERVED:
        return f"{key!r} is reserved for Toolbelt's own tools: choose another name."
    return None


def toolkit_key_problem(key: str) -> str | None:
    """Return the problem of ``key`` as a toolkit's key, or None."""
    if not _KEY.fullmatch(key):
        return f"{key!r} is not a toolkit's key: it {_KEY_RULE}."
    if SEPARATOR in key:
        return f"{key!r} contains {SEPARATOR!r}, which only ends a namespace: use a single _."
    if fold(key) in RESERVED:
        return f"{key!r} is reserved for Toolbelt's own tools: choose another name."
    return None


def namespace_problem(namespace: str) -> str | None:
    """Return the problem of ``namespace``, or None; it must leave room for ``__`` and a name."""
    if not _KEY.fullmatch(namespace):
        return f"{namespace!r} is not a namespace: it {_KEY_RULE}."
    if SEPARATOR in namespace:
        return f"{namespace!r} contains {SEPARATOR!r}, which ends a namespace: use a single _."
    if len(namespace) > MAX_LENGTH - len(SEPARATOR) - 1:
        return f"{namespace!r} leaves no room for a tool's name: at most {MAX_LENGTH - len(SEPARATOR) - 1} characters."
    return None


def name_problem(name: str) -> str | None:
    """Return the problem of ``name`` for a plugin, loadout, agent or sub-app, or None."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is not a name: 1 to 64 letters, digits, _, . or -."
    if not name.strip("."):
        # Browsers and proxies resolve such a segment of a URL, and never request it.
        return f"{name!r} is not a name: it cannot consist only of dots."
    return None


def in_namespace(key: str, namespace: str) -> bool:
    """Return whether ``key`` is ``<namespace>__<name>`` with a non-empty name."""
    prefix = namespace + SEPARATOR
    return key.startswith(prefix) and len(key) > len(prefix)


def fit(original: str, namespace: str = "", *, is_marked: bool = False) -> str:
    """Return a valid tool key for an upstream tool's ``original`` name.

    Other characters become ``_``; a key over 64 characters is cut and ends in six hex digits of the original's SHA-256,
    so that long names with the same beginning stay distinct. With ``is_marked``, every key ends in them, for names that
    would have the same key. The upstream call uses the original name.
    """
    name = _FOREIGN.sub("_", original)
    if not namespace and SEPARATOR not in original:
        # Only what the server itself writes may look like a namespace.
        name = re.sub("__+", "_", name)
    key = f"{namespace}{SEPARATOR}{name}" if namespace else name
    if not key or not re.match(r"[a-zA-Z_]", key):
        key = "_" + key
    mark = hashlib.sha256(original.encode(errors="replace")).hexdigest()[:6]
    if len(key) > MAX_LENGTH:
        return key[: MAX_LENGTH - len(mark)] + mark
    return f"{key[: MAX_LENGTH - len(mark) - 1].rstrip('_')}_{mark}" if is_marked else key
