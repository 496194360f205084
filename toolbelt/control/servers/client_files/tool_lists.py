"""The tools of a server that a client's user left out, or to which they limited it, in the spellings of clients.

The names are the server's own, with ``*`` for any text. Clients that put the server's name before them are undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.control.servers.client_files import spellings
from toolbelt.core import texts

# Denied tools, and the only tools. An empty list of the second kind denies all, except in the third.
_DENIED = (
    *("excludeTools", "disabled_tools", "disallowed_tools", "denied_tools", "blocked_tools", "deny_tools"),
    *(
        "tools_exclude",
        "excluded_tools",
        "exclude_tools",
        "tool_denylist",
        "tools_denylist",
        "tool_blocklist",
    ),
)
_ALLOWED = (
    *("includeTools", "enabled_tools", "allowed_tools", "allow_tools", "tools_include", "included_tools"),
    *("tool_allowlist", "tools_allowlist", "selected_tools", "tools_filter"),
)
_ALLOWED_IF_ANY = ("available_tools",)
# Objects with lists of both kinds: {"include": [], "exclude": []}, {"mode": "block", "list": []}.
_FILTERS = ("tool_filter", "tools_filter", "tools", "filter")
_INNER_DENIED = (
    "exclude",
    "excluded",
    "deny",
    "denied",
    "disabled",
    "blocked",
    "block",
    "blocklist",
    "denylist",
)
_INNER_ALLOWED = ("include", "included", "allow", "allowed", "enabled", "allowlist")
_SEPARATORS = ("__", "_", "-", ".", "/", ":", "::")
_OFF_WORDS = frozenset({"deny", "disabled", "off", "block", "blocked", "never", "exclude"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLists:
    """The names of tools to reject, and those beside which all are rejected; none if there is no such list."""

    denied: tuple[str, ...] = ()
    allowed: tuple[str, ...] | None = None

    def joined(self, other: ToolLists) -> ToolLists:
        """Return the lists that reject what either rejects."""
        lists = [allowed for allowed in (self.allowed, other.allowed) if allowed is not None]
        allowed = tuple(name for name in lists[0] if name in lists[-1] or "*" in lists[-1]) if lists else None
        if len(lists) == 2 and "*" in lists[0]:
            allowed = lists[1]
        return ToolLists(denied=tuple(dict.fromkeys((*self.denied, *other.denied))), allowed=allowed)

    def rejected(self, server: str) -> list[str]:
        """Return the tools to reject, each also by the name that the server itself has for it."""
        return ["*"] if self.allowed == () or "*" in self.denied else _own_names(self.denied, server)

    def not_rejected(self, server: str) -> list[str]:
        """Return the only tools that are not to be rejected, in the same way; none if there is no such list."""
        return [] if self.allowed is None or "*" in self.allowed else _own_names(self.allowed, server)

    def sentences(self) -> list[str]:
        """Return what is rejected when the server first lists it, with the number of names."""
        if self.allowed == () or "*" in self.denied:
            return ["All tools arrive rejected."]
        told = []
        if self.allowed is not None and "*" not in self.allowed:
            told.append(
                f"All tools but {len(self.allowed)} arrive rejected. Not rejected: {_listed(self.allowed)}."
            )
        if self.denied:
            arrive = "arrives" if len(self.denied) == 1 else "arrive"
            counted = texts.counted(len(self.denied), "tool")
            told.append(f"{counted} {arrive} rejected: {_listed(self.denied)}.")
        return told


def of_server(fields: spellings.Fields) -> ToolLists:
    """Return the lists among the fields of a server."""
    found = ToolLists()
    for key in _DENIED:
        if (names := _names(fields.given(key))) is not None:
            found = found.joined(ToolLists(denied=names))
            fields.take(key)
    for key in (*_ALLOWED, *_ALLOWED_IF_ANY):
        if (names := _names(fields.given(key))) is not None:
            fields.take(key)
            if names or key not in _ALLOWED_IF_ANY:
                found = found.joined(ToolLists(allowed=names))
    for key in _FILTERS:
        value = fields.given(key)
        if key == "tools" and _is_list_of_only_tools(value) and not fields.has("image"):
            fields.take(key)
            found = found.joined(ToolLists(allowed=_names(value) or ()))
        elif isinstance(value, Mapping) and (inner := fields.inside_of(key)) is not None:
            found = found.joined(_of_filter(inner))
    return found


def beside(name: str, document: Mapping[str, Any]) -> tuple[ToolLists, set[tuple[str, str]]]:
    """Return the lists that a file has beside its servers for this one, and the keys that have them.

    opencode has ``tools`` and ``permission`` by a pattern over ``SERVER_TOOL``, and Claude Code ``permissions.deny`` of
    ``mcp__SERVER__TOOL``.
    """
    denied: list[str] = []
    allowed: list[str] = []
    used: set[tuple[str, str]] = set()
    for key in ("tools", "permission"):
        section = document.get(key)
        for pattern, value in section.items() if isinstance(section, Mapping) else ():
            tools = [*_within(str(pattern), f"{name}_")] if isinstance(value, bool | str) else []
            is_off = value is False or (isinstance(value, str) and value.lower() in _OFF_WORDS)
            (denied if is_off else allowed).extend(tools)
            # To ask a user is not taken over.
            if tools and (is_off or value is True or value == "allow"):
                used.add((key, str(pattern)))
    permissions = document.get("permissions")
    listed = permissions.get("deny") if isinstance(permissions, Mapping) else None
    rules = [str(rule) for rule in listed] if isinstance(listed, list) else []
    for rule in rules:
        tools = ["*"] if rule == f"mcp__{name}" else [*_within(rule, f"mcp__{name}__")]
        denied += tools
        if tools and all(other.startswith("mcp__") for other in rules):
            used.add(("permissions", "deny"))
    if "*" in denied and allowed:
        # What a later, narrower pattern allows again.
        return ToolLists(allowed=tuple(allowed), denied=tuple(tool for tool in denied if tool != "*")), used
    return ToolLists(denied=tuple(denied)), used


def _within(pattern: str, prefix: str) -> Iterator[str]:
    """Yield the patterns of the names that this one matches behind a prefix."""
    head, star, rest = pattern.partition("*")
    if head.startswith(prefix):
        if len(pattern) > len(prefix):
            yield pattern[len(prefix) :]
    elif star and prefix.startswith(head):
        yield pattern[len(head) :]
        # The * may also end within the prefix: *_drop matches x_drop.
        ends = (prefix[start:] for start in range(len(head), len(prefix)))
        yield from (rest[len(end) :] for end in ends if rest.startswith(end) and rest != end)


def _is_list_of_only_tools(value: Any) -> bool:
    """Return whether this is Copilot CLI's list of the only tools; in a manifest, it describes each tool."""
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )


def _of_filter(fields: spellings.Fields) -> ToolLists:
    """Return the lists of an object: a mode and a list, a list of each kind, or a switch for each tool."""
    if isinstance(mode := fields.given("mode"), str):
        limited = _names(fields.take("list", "tools", "names")) or ()
        fields.take("mode")
        is_denied = mode.lower().startswith(("block", "deny", "exclude", "disable"))
        return ToolLists(denied=limited) if is_denied else ToolLists(allowed=limited)
    found = ToolLists()
    for key in (*_INNER_DENIED, *_INNER_ALLOWED):
        if (names := _names(fields.given(key))) is not None:
            fields.take(key)
            lists = ToolLists(denied=names) if key in _INNER_DENIED else ToolLists(allowed=names)
            found = found.joined(lists)
    switches = {str(tool): _is_tool_on(str(tool), fields) for tool in fields.document}
    on, off = (tuple(tool for tool, switch in switches.items() if switch is state) for state in (True, False))
    switched = ToolLists(allowed=on) if "*" in off else ToolLists(denied=off)
    return found.joined(switched)


def _is_tool_on(tool: str, fields: spellings.Fields) -> bool | None:
    """Return whether a tool's own entry has it on; None if it does not say."""
    value = fields.document[tool]
    if isinstance(value, Mapping):
        return spellings.switch(fields.inside(tool))
    if isinstance(value, bool) or (isinstance(value, str) and value.lower() in _OFF_WORDS):
        fields.use(tool)
        return value is True
    return None


def _own_names(names: Iterable[str], server: str) -> list[str]:
    """Return names of tools, and those without the server's name that a client puts before them."""
    own = [
        name[len(server + separator) :]
        for name in names
        for separator in _SEPARATORS
        if name.startswith(server + separator)
    ]
    return [*dict.fromkeys((*names, *filter(None, own)))]


def _listed(names: Sequence[str]) -> str:
    return texts.listing([spellings.shown_key(name) for name in names])


def _names(value: Any) -> tuple[str, ...] | None:
    """Return the names in a list of tools, or in a text with commas; None if it is no list of names."""
    if isinstance(value, str) and value.strip():
        value = value.split(",")
    if not isinstance(value, list):
        return None
    listed = [item.get("name") if isinstance(item, Mapping) else item for item in value if item is not None]
    names = [name.strip() for name in listed if isinstance(name, str)]
    return tuple(dict.fromkeys(filter(None, names))) if len(names) == len(listed) else None
