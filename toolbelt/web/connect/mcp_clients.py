"""How each MCP client is configured for one agent, and what of the agent that client would cut or refuse.

The token comes from where each client can keep it: the environment, or its own file.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from toolbelt.core import policy, surface, tool_lists
from toolbelt.web.connect import snippets
from toolbelt.web.kit import pieces, words

# What the clients call this server; its tools are named after it there.
NAME = "toolbelt"
# More tools than these are counted, and not named.
MAX_NAMED = 20
_INSERT = "The file contains the token: make sure that only you can read it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client: where its configuration goes (``note``), and what it takes.

    ``prefix`` is what it puts before the name of a tool, and ``longest_name`` the longest name with that;
    ``longest_instructions`` is how many characters of the policy it reads, None if no limit is known. The configuration
    itself is ``templates/connect/clients/<id>.txt``.
    """

    id: str
    label: str
    note: str = ""
    prefix: str = ""
    longest_name: int = 64
    longest_instructions: int | None = None


def configurations(origin: str, agent: str, answer: surface.Surface) -> Iterator[pieces.View]:
    """Return the configuration of each client; ``origin`` is this installation's, as the browser reaches it.

    ``answer`` is what the agent's model gets, for the warnings.
    """
    url = f"{origin}/mcp/{agent}"
    for client in CLIENTS:
        text = snippets.render(
            f"clients/{client.id}",
            url=json.dumps(url),
            shell_url=shlex.quote(url),
            agent=json.dumps(agent)[1:-1],
            is_http=url.startswith("http:"),
        )
        warnings = (*_cut_instructions(client, answer.policy), *_long_names(client, answer))
        yield snippets.snippet(
            client.id, client.label, text, note=client.note, warnings=warnings, is_client=True
        )


def cut_instructions(given: policy.Policy) -> tuple[str, ...]:
    """Return a sentence for each client that cuts this policy."""
    return tuple(sentence for client in CLIENTS for sentence in _cut_instructions(client, given))


def _cut_instructions(client: Client, given: policy.Policy) -> Iterator[str]:
    # As clients count, most of which are written in JavaScript: in units of UTF-16.
    length = len(policy.text_by_importance(given).encode("utf-16-le")) // 2
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


CLIENTS = (
    Client(
        id="claude-code",
        label="Claude Code",
        prefix=f"mcp__{NAME}__",
        longest_instructions=2048,
    ),
    Client(
        id="cursor",
        label="Cursor",
        note="In .cursor/mcp.json, or ~/.cursor/mcp.json.",
        prefix=f"{NAME}:",
        longest_name=60,
    ),
    Client(id="vs-code", label="VS Code", note="In .vscode/mcp.json.", prefix=f"mcp_{NAME}_"),
    Client(id="codex", label="Codex", note="In ~/.codex/config.toml.", prefix=f"mcp__{NAME}__"),
    Client(
        id="gemini-cli",
        label="Gemini CLI",
        note="In ~/.gemini/settings.json, or .gemini/settings.json of a project.",
        prefix=f"mcp_{NAME}_",
        longest_name=63,
    ),
    Client(
        id="copilot-cli",
        label="Copilot CLI",
        note=f"In ~/.copilot/mcp-config.json. {_INSERT}",
        prefix=f"{NAME}-",
    ),
    Client(
        id="opencode",
        label="opencode",
        note="In opencode.json. Up to version 1, the server stands directly under mcp, without servers.",
        prefix=f"{NAME}_",
    ),
    Client(id="cline", label="Cline", note=f"In cline_mcp_settings.json. {_INSERT}"),
    Client(
        id="claude-desktop",
        label="Claude Desktop",
        note=f"In claude_desktop_config.json, by way of mcp-remote, which needs Node.js. {_INSERT}",
        prefix=f"{NAME}:",
    ),
)
