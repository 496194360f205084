"""How each MCP client is configured for one agent, and what of the agent that client would cut or refuse.

The token comes from where each client can keep it: the environment, or its own file.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import policy, surface, tool_lists
from toolbelt.web.kit import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One ready-made piece of code. `id` is its place in the page, for the button that copies it.

    `note` says where it goes, `warnings` what would not arrive there.
    """

    id: str
    label: str
    text: str
    note: str = ""
    warnings: tuple[str, ...] = ()


# What the clients call this server; its tools are named after it there.
NAME = "toolbelt"
# What stands for the token where a client reads it from no variable of the environment.
PLACEHOLDER = "YOUR_TOKEN"
# More tools than these are counted, and not named.
MAX_NAMED = 20
_INSERT = f"Put the token in place of {PLACEHOLDER}, and make sure that only you can read the file."


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client: how its configuration is written for an address and an agent, where it goes, and what it takes.

    ``prefix`` is what it puts before the name of a tool, and ``longest_name`` the longest name with that;
    ``longest_instructions`` is how many characters of the policy it reads, None where no limit is known.
    """

    id: str
    label: str
    write: Callable[[str, str], str]
    note: str = ""
    prefix: str = ""
    longest_name: int = 64
    longest_instructions: int | None = None


def address(origin: str, agent: str) -> str:
    """Return the agent's address for MCP clients."""
    return f"{origin}/mcp/{agent}"


def snippets(origin: str, agent: str, answer: surface.Surface) -> Iterator[Snippet]:
    """Write the configuration of each client; ``origin`` is this installation's, as the browser reaches it.

    ``answer`` is what the agent's model gets, for the warnings.
    """
    url = address(origin, agent)
    for client in CLIENTS:
        yield Snippet(
            id=f"snippet-{client.id}",
            label=client.label,
            text=client.write(url, agent),
            note=client.note,
            warnings=(*_cut_instructions(client, answer.policy), *_long_names(client, answer)),
        )


def cut_instructions(told: policy.Policy) -> tuple[str, ...]:
    """Return a sentence for each client that cuts this policy."""
    return tuple(sentence for client in CLIENTS for sentence in _cut_instructions(client, told))


def _cut_instructions(client: Client, told: policy.Policy) -> Iterator[str]:
    length = _length(policy.text_by_importance(told))
    limit = client.longest_instructions
    if limit is not None and length > limit:
        yield (
            f"{client.label} reads the first {words.number(limit)} characters of the policy, which has"
            f" {words.number(length)}. Policies of what is on come first; the rest is cut. The resource"
            " toolbelt://policy holds all of it."
        )


def _long_names(client: Client, answer: surface.Surface) -> Iterator[str]:
    listed = tool_lists.of(answer, answer.resolution.context.agent.mcp_loading).tools
    most = client.longest_name - len(client.prefix)
    names = [definition.name for definition in listed if len(definition.name) > most]
    if names:
        more = f" and {words.number(len(names) - MAX_NAMED)} more" if len(names) > MAX_NAMED else ""
        has, its = ("has a name", "is") if len(names) == 1 else ("have names", "are")
        yield (
            f"{words.tools(len(names)).capitalize()} {has} that {its} too long for {client.label}, which puts"
            f" {client.prefix} in front and takes {client.longest_name} characters:"
            f" {', '.join(names[:MAX_NAMED])}{more}. Use a shorter name than {NAME} there, or shorter keys."
        )


def _length(text: str) -> int:
    """Count as clients do, most of which are written in JavaScript: in units of UTF-16."""
    return len(text.encode("utf-16-le")) // 2


def _claude_code(url: str, agent: str) -> str:
    return (
        f"claude mcp add --transport http {NAME} {shlex.quote(url)} \\\n"
        '  --header "Authorization: Bearer $TOOLBELT_TOKEN"\n'
    )


def _cursor(url: str, agent: str) -> str:
    return _json({"mcpServers": {NAME: {"url": url, **_headers("${env:TOOLBELT_TOKEN}")}}})


def _vs_code(url: str, agent: str) -> str:
    asked = {
        "type": "promptString",
        "id": "toolbelt-token",
        "description": f"Token of the agent {agent}",
        "password": True,
    }
    server = {"type": "http", "url": url, **_headers("${input:toolbelt-token}")}
    return _json({"inputs": [asked], "servers": {NAME: server}})


def _codex(url: str, agent: str) -> str:
    return f'[mcp_servers.{NAME}]\nurl = {json.dumps(url)}\nbearer_token_env_var = "TOOLBELT_TOKEN"\n'


def _gemini(url: str, agent: str) -> str:
    return _json({"mcpServers": {NAME: {"httpUrl": url, **_headers("${TOOLBELT_TOKEN}")}}})


def _copilot(url: str, agent: str) -> str:
    server = {"type": "http", "url": url, **_headers(PLACEHOLDER), "tools": ["*"]}
    return _json({"mcpServers": {NAME: server}})


def _opencode(url: str, agent: str) -> str:
    server = {"type": "remote", "url": url, "oauth": False, **_headers("{env:TOOLBELT_TOKEN}")}
    return _json({"$schema": "https://opencode.ai/config.json", "mcp": {"servers": {NAME: server}}})


def _cline(url: str, agent: str) -> str:
    return _json({"mcpServers": {NAME: {"type": "streamableHttp", "url": url, **_headers(PLACEHOLDER)}}})


def _claude_desktop(url: str, agent: str) -> str:
    # A space in an argument is lost on some systems, so that of the header stands in a variable.
    arguments = [
        "-y",
        "mcp-remote",
        url,
        "--transport",
        "http-only",
        "--header",
        "Authorization:${AUTH_HEADER}",
    ]
    if url.startswith("http:"):
        arguments.append("--allow-http")
    server = {"command": "npx", "args": arguments, "env": {"AUTH_HEADER": f"Bearer {PLACEHOLDER}"}}
    return _json({"mcpServers": {NAME: server}})


def _headers(token: str) -> Mapping[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


CLIENTS = (
    Client(
        id="claude-code",
        label="Claude Code",
        write=_claude_code,
        prefix=f"mcp__{NAME}__",
        longest_instructions=2048,
    ),
    Client(
        id="cursor",
        label="Cursor",
        write=_cursor,
        note="In .cursor/mcp.json, or ~/.cursor/mcp.json.",
        prefix=f"{NAME}:",
        longest_name=60,
    ),
    Client(id="vs-code", label="VS Code", write=_vs_code, note="In .vscode/mcp.json.", prefix=f"mcp_{NAME}_"),
    Client(id="codex", label="Codex", write=_codex, note="In ~/.codex/config.toml.", prefix=f"mcp__{NAME}__"),
    Client(
        id="gemini-cli",
        label="Gemini CLI",
        write=_gemini,
        note="In ~/.gemini/settings.json, or .gemini/settings.json of a project.",
        prefix=f"mcp_{NAME}_",
        longest_name=63,
    ),
    Client(
        id="copilot-cli",
        label="Copilot CLI",
        write=_copilot,
        note=f"In ~/.copilot/mcp-config.json. {_INSERT}",
        prefix=f"{NAME}-",
    ),
    Client(
        id="opencode",
        label="opencode",
        write=_opencode,
        note="In opencode.json. Up to version 1, the server stands directly under mcp, without servers.",
        prefix=f"{NAME}_",
    ),
    Client(id="cline", label="Cline", write=_cline, note=f"In cline_mcp_settings.json. {_INSERT}"),
    Client(
        id="claude-desktop",
        label="Claude Desktop",
        write=_claude_desktop,
        note=f"In claude_desktop_config.json, by way of mcp-remote, which needs Node.js. {_INSERT}",
        prefix=f"{NAME}:",
    ),
)
