"""The MCP clients that Toolbelt can write the configuration of, and that configuration for an agent.

The token comes from where each client can keep it: the environment, or its own file (``YOUR_TOKEN``).
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from django.template import loader

from toolbelt.core import agents, errors, text_limits

# What the clients call this server, if they are not told otherwise; its tools are named after it there.
NAME = "toolbelt"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
# Keys of the clients' files, which are not servers.
_KEYS = frozenset({"inputs", "mcp", "mcpServers", "mcp_servers", "servers"})
PLACEHOLDER = "YOUR_TOKEN"
_SECRET_INSIDE = "The file contains the token: make sure that only you can read it."  # noqa: S105


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client: where its configuration goes (``note``), and what it takes.

    ``file`` is the usual one, and ``template`` the configuration for it, if not ``templates/connect/clients/<id>.txt``.
    ``prefix`` is what the client puts before the name of a tool, and ``max_name_length`` the longest name with that;
    ``max_instructions_length`` is how many characters of the policy it reads, None if no limit is known.
    ``on_change`` is what its model's provider receives when the list of tools changes: the change, appended to the
    conversation; the whole again, read once more at full price; or the whole again, which it may refuse.
    """

    id: str
    label: str
    file: str
    note: str = ""
    prefix: str = ""
    max_name_length: int = 64
    max_instructions_length: int | None = None
    template: str = ""
    on_change: Literal["appends", "rereads", "rewrites"] = "rewrites"


def is_name(name: str) -> bool:
    """Return whether every client, and a key of TOML, takes this as the name of a server."""
    return _NAME.fullmatch(name) is not None and name not in _KEYS


class Loading(NamedTuple):
    """How a client loads tools: what its address must say, None if nothing, and a sentence that says why."""

    in_address: agents.McpLoading | None
    why: str


def loading(client: Client, of_agent: agents.McpLoading) -> Loading:
    """Return how a client should load tools, by what the agent's own setting is (``mcp_loading``)."""
    if of_agent != "dispatch":
        return Loading(None, f"{client.label} loads tools as the agent's settings say: {of_agent}.")
    if client.on_change == "appends":
        why = f"{client.label} appends a changed list of tools to the conversation, so it gets each change at once."
        return Loading(None, why)
    if client.on_change == "rereads":
        why = (
            f"{client.label} gets each change of its list of tools at once. After one, its provider reads the"
            " conversation once more at full price."
        )
        return Loading(None, why)
    why = (
        f"{client.label} would put a changed list of tools before the whole conversation, which the newest Claude"
        " models refuse and every provider bills again. So its list never changes in a conversation"
        " (loading=constant): it calls new tools with call_tool, and calls of removed ones are refused."
    )
    return Loading("constant", why)


def text(
    client: Client,
    origin: str,
    agent: str,
    *,
    name: str = NAME,
    for_file: bool = False,
    loading: agents.McpLoading | None = None,
) -> str:
    """Return the client's configuration for an agent of the installation at ``origin``, as the server ``name``.

    It is what a person enters, which can be a command; ``for_file``: the contents of a file. ``loading`` is how this
    client loads tools, if not as the agent's settings say.
    """
    url = f"{origin}/mcp/{agent}{f'?loading={loading}' if loading else ''}"
    template = client.template if for_file and client.template else client.id
    values = {
        "url": json.dumps(url),
        "shell_url": shlex.quote(url),
        "agent": json.dumps(agent)[1:-1],
        "is_http": url.startswith("http:"),
        "name": name,
    }
    return loader.render_to_string(f"connect/clients/{template}.txt", values).strip() + "\n"


def merge(existing: str, new: str, *, name: str = NAME, is_toml: bool, replace: bool) -> str:
    """Return the contents of a client's file with a new configuration of the server ``name``; everything else stays.

    Raise errors.Invalid if the file cannot be read, and errors.Refused if it has another server of this name that
    ``replace`` does not give up.
    """
    if not existing.strip():
        return new
    try:
        return (_merge_toml if is_toml else _merge_json)(existing, new, name, replace=replace)
    except RecursionError as error:
        raise _unreadable("It is nested too deeply.") from error


def _merge_json(existing: str, new: str, name: str, *, replace: bool) -> str:
    try:
        document = json.loads(existing)
    except ValueError as error:
        raise _unreadable(f"It is not JSON, or has comments: {error}.") from error
    if not isinstance(document, dict):
        raise _unreadable("It is not a JSON object.")
    _add(document, json.loads(new), name, replace=replace)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _add(document: dict[str, Any], new: dict[str, Any], name: str, *, replace: bool) -> None:
    for key, value in new.items():
        present = document.get(key)
        if key not in document or present == value:
            document[key] = value
        elif key == name:
            if not replace:
                raise _name_taken(name)
            document[key] = value
        elif isinstance(present, dict) and isinstance(value, dict):
            _add(present, value, name, replace=replace)
        elif isinstance(present, list) and isinstance(value, list):
            # Inputs of VS Code, by their ids.
            ids = {item["id"] for item in value}
            document[key] = [
                item for item in present if not isinstance(item, dict) or item.get("id") not in ids
            ]
            document[key] += value
        elif isinstance(value, dict | list):
            raise _unreadable(f"{key} has an unexpected form.")


def _merge_toml(existing: str, new: str, name: str, *, replace: bool) -> str:
    try:
        text_limits.check_toml(existing)
        document = tomllib.loads(existing)
    except text_limits.LimitError as error:
        raise _unreadable(f"It cannot be read: {error}.") from error
    except ValueError as error:
        raise _unreadable(f"It is not TOML: {error}.") from error
    servers = document.get("mcp_servers", {})
    present = servers.get(name) if isinstance(servers, dict) else None
    if present is not None and present != tomllib.loads(new)["mcp_servers"][name]:
        if not replace:
            raise _name_taken(name)
        # Its table, and tables below it, up to the next table.
        table = rf"^\[mcp_servers\.{re.escape(name)}(?:\.[^\]]*)?\][^\n]*\n(?:(?!\[)[^\n]*\n?)*"
        existing = re.sub(table, "", existing, flags=re.MULTILINE)
        present = None
    if present is not None:
        return existing
    merged = f"{existing.rstrip()}\n\n{new}".lstrip()
    try:
        tomllib.loads(merged)
    except ValueError as error:
        raise _unreadable(f"{name} is configured in a form that cannot be changed here.") from error
    return merged


def _name_taken(name: str) -> errors.Refused:
    return errors.Refused(
        f"The file has another server named {name}: add --replace to replace it, or --name for another name."
    )


def _unreadable(reason: str) -> errors.Invalid:
    return errors.Invalid.of(f"{reason} Add the configuration by hand.")


def find(client_id: str) -> Client:
    """Return the client with this id. Raise errors.NotFound."""
    for client in CLIENTS:
        if client.id == client_id:
            return client
    raise errors.NotFound("MCP client", client_id, [client.id for client in CLIENTS])


CLIENTS = (
    Client(
        id="claude-code",
        label="Claude Code",
        file=".mcp.json",
        prefix=f"mcp__{NAME}__",
        max_instructions_length=2048,
        template="claude-code-project",
        on_change="appends",
    ),
    Client(
        id="cursor",
        label="Cursor",
        file="~/.cursor/mcp.json",
        note="In .cursor/mcp.json, or ~/.cursor/mcp.json.",
        prefix=f"{NAME}:",
        max_name_length=60,
    ),
    Client(
        id="vs-code",
        label="VS Code",
        file=".vscode/mcp.json",
        note="In .vscode/mcp.json.",
        prefix=f"mcp_{NAME}_",
    ),
    Client(
        id="codex",
        label="Codex",
        file="~/.codex/config.toml",
        note="In ~/.codex/config.toml.",
        prefix=f"mcp__{NAME}__",
        on_change="rereads",
    ),
    Client(
        id="gemini-cli",
        label="Gemini CLI",
        file="~/.gemini/settings.json",
        note="In ~/.gemini/settings.json, or .gemini/settings.json of a project.",
        prefix=f"mcp_{NAME}_",
        max_name_length=63,
    ),
    Client(
        id="copilot-cli",
        label="Copilot CLI",
        file="~/.copilot/mcp-config.json",
        note=f"In ~/.copilot/mcp-config.json. {_SECRET_INSIDE}",
        prefix=f"{NAME}-",
    ),
    Client(
        id="opencode",
        label="opencode",
        file="opencode.json",
        note="In opencode.json. Up to version 1, put the server directly under mcp, without servers.",
        prefix=f"{NAME}_",
    ),
    Client(
        id="cline",
        label="Cline",
        file="cline_mcp_settings.json",
        note=f"In cline_mcp_settings.json. {_SECRET_INSIDE}",
    ),
    Client(
        id="claude-desktop",
        label="Claude Desktop",
        file="claude_desktop_config.json",
        note=f"In claude_desktop_config.json, through mcp-remote, which needs Node.js. {_SECRET_INSIDE}",
        prefix=f"{NAME}:",
    ),
)
