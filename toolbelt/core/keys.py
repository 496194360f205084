"""What is a well-formed name? (semantics: Names)

A tool's key must be taken by OpenAI, Anthropic, Gemini, Bedrock and MCP alike, so the rule is the widest
that all of them accept. A toolkit's key and a namespace hold no ``__``: the first ``__`` of a tool's key
always ends its namespace, and an imported tool can never meet a toolkit's key.
"""

from __future__ import annotations

import hashlib
import re

SEPARATOR = "__"
LONGEST = 64
RESERVED = frozenset({"list_toolkits", "load_tools", "unload_tools", "search_tools", "call_tool"})

_KEY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")

_KEY_RULE = "starts with a letter or _, then letters, digits, _ or -, at most 64 characters"


def fold(name: str) -> str:
    """Give the form in which names are compared where case does not count."""
    return name.casefold()


def tool_key_problem(key: str) -> str | None:
    """Say what is wrong with ``key`` as a tool's full key, or None."""
    if not _KEY.fullmatch(key):
        return f"{key!r} is not a tool's key: it {_KEY_RULE}."
    if fold(key) in RESERVED:
        return f"{key!r} is reserved for Toolbelt's own tools: choose another name."
    return None


def toolkit_key_problem(key: str) -> str | None:
    """Say what is wrong with ``key`` as a toolkit's key, or None."""
    if not _KEY.fullmatch(key):
        return f"{key!r} is not a toolkit's key: it {_KEY_RULE}."
    if SEPARATOR in key:
        return f"{key!r} holds {SEPARATOR!r}, which only ends a namespace: use a single _."
    if fold(key) in RESERVED:
        return f"{key!r} is reserved for Toolbelt's own tools: choose another name."
    return None


def namespace_problem(namespace: str) -> str | None:
    """Say what is wrong with ``namespace``, or None; there must be room for ``__`` and a name behind it."""
    if not _KEY.fullmatch(namespace):
        return f"{namespace!r} is not a namespace: it {_KEY_RULE}."
    if SEPARATOR in namespace:
        return f"{namespace!r} holds {SEPARATOR!r}, which ends a namespace: use a single _."
    if len(namespace) > LONGEST - len(SEPARATOR) - 1:
        return f"{namespace!r} leaves no room for a tool's name: at most {LONGEST - len(SEPARATOR) - 1} characters."
    return None


def name_problem(name: str) -> str | None:
    """Say what is wrong with ``name`` for a plugin, loadout, agent or sub-app, or None."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is not a name: 1 to 64 letters, digits, _, . or -."
    if not name.strip("."):
        # Browsers and proxies take such a part of an address for a way up, and never ask for it.
        return f"{name!r} is not a name: it needs more than dots, which cannot stand alone in an address."
    return None


def in_namespace(key: str, namespace: str) -> bool:
    """Say whether ``key`` is ``<namespace>__<name>`` with a name."""
    prefix = namespace + SEPARATOR
    return key.startswith(prefix) and len(key) > len(prefix)


def fit(original: str, namespace: str = "") -> str:
    """Make a tool's key of an upstream tool's ``original`` name.

    Foreign characters become ``_``; a key over 64 characters is cut and ends in six hex digits of the
    original's SHA-256, so two long names that share a beginning stay apart. The upstream call keeps the original.
    """
    name = _FOREIGN.sub("_", original)
    key = f"{namespace}{SEPARATOR}{name}" if namespace else name
    if not key or not re.match(r"[a-zA-Z_]", key):
        key = "_" + key
    if len(key) > LONGEST:
        key = key[: LONGEST - 6] + hashlib.sha256(original.encode(errors="replace")).hexdigest()[:6]
    return key
