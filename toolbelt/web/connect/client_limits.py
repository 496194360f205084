"""How each MCP client is configured for one agent, and what of the agent that client would cut or refuse."""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt.control.agents import mcp_clients
from toolbelt.core import policy, surface, tool_lists
from toolbelt.web.connect import snippets
from toolbelt.web.kit import pieces, words

# More tools than these are counted, and not named.
MAX_NAMED = 20


def configurations(origin: str, agent: str, answer: surface.Surface) -> Iterator[pieces.View]:
    """Return the configuration of each client; ``origin`` is this installation's, as the browser reaches it.

    ``answer`` is what the agent's model gets, for the warnings.
    """
    for client in mcp_clients.CLIENTS:
        text = mcp_clients.text(client, origin, agent)
        warnings = (*_cut_instructions(client, answer.policy), *_long_names(client, answer))
        yield snippets.snippet(
            client.id, client.label, text, note=client.note, warnings=warnings, is_client=True
        )


def cut_instructions(given: policy.Policy) -> tuple[str, ...]:
    """Return a sentence for each client that cuts this policy."""
    return tuple(sentence for client in mcp_clients.CLIENTS for sentence in _cut_instructions(client, given))


def _cut_instructions(client: mcp_clients.Client, given: policy.Policy) -> Iterator[str]:
    # As clients count, most of which are written in JavaScript: in units of UTF-16.
    length = len(policy.text_by_importance(given).encode("utf-16-le")) // 2
    limit = client.longest_instructions
    if limit is not None and length > limit:
        yield (
            f"{client.label} reads the first {words.number(limit)} characters of the policy, which has"
            f" {words.number(length)}. Policies of toolkits that are on come first; the rest is cut off. The resource"
            " toolbelt://policy contains all of it."
        )


def _long_names(client: mcp_clients.Client, answer: surface.Surface) -> Iterator[str]:
    listed = tool_lists.of(answer, answer.resolution.context.agent.mcp_loading).tools
    maximum = client.longest_name - len(client.prefix)
    names = [definition.name for definition in listed if len(definition.name) > maximum]
    if names:
        more = f" and {words.number(len(names) - MAX_NAMED)} more" if len(names) > MAX_NAMED else ""
        has, its = ("has a name", "is") if len(names) == 1 else ("have names", "are")
        yield (
            f"{words.tools(len(names)).capitalize()} {has} that {its} too long for {client.label}, which puts"
            f" {client.prefix} in front and takes {client.longest_name} characters:"
            f" {', '.join(names[:MAX_NAMED])}{more}. Use a shorter name than {mcp_clients.NAME} there, or shorter keys."
        )
