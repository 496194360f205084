"""Ready-made code that connects an agent: with the HTTP API, and with each framework that has an adapter."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from django.template import loader
from django.utils.http import urlencode

from toolbelt import conf
from toolbelt.web.kit import pieces

LANGUAGES = {"curl": "curl", "python": "Python"}
# The frameworks of docs/how-to/use-with-frameworks.md, in its order.
FRAMEWORKS = {
    "langchain": "LangChain",
    "pydantic-ai": "Pydantic AI",
    "openai-agents": "OpenAI Agents",
    "google-adk": "Google ADK",
}


def snippet(name: str, label: str, text: str, **about: Any) -> pieces.View:
    """Return the code of a way to connect, without a token; ``is_client``: it configures an MCP client."""
    return pieces.View(name=name, label=label, text=text, **{"is_client": False, **about})


def render(template: str, **values: str | bool) -> str:
    """Return the code in a template of this page."""
    return loader.render_to_string(f"connect/{template}.txt", values).strip() + "\n"


def issue_command(agent: str) -> str:
    """Return the command that issues a token."""
    return f"{conf.COMMAND} token issue --agent {shlex.quote(agent)} --days 90"


def languages(address: str, tool: str) -> Iterator[pieces.View]:
    """Return code that asks for tools and calls one, in each language; ``address`` is the agent's in the API."""
    asked = urlencode({"session": "s1", "format": "openai_chat"})
    curl = render(
        "languages/curl",
        surface_url=shlex.quote(f"{address}surface?{asked}"),
        call=shlex.quote(json.dumps({"session": "s1", "tool": tool, "arguments": {}})),
        calls_url=shlex.quote(f"{address}calls"),
    )
    python = render("languages/python", address=repr(address), tool=repr(tool))
    for name, text in (("python", python), ("curl", curl)):
        yield snippet(name, LANGUAGES[name], text)


def framework(name: str, origin: str, agent: str) -> str:
    """Return a whole program for a framework, an agent, and the Toolbelt at ``origin``; ``model`` is left open."""
    return render(f"frameworks/{name}", address=json.dumps(origin), agent=json.dumps(agent))


def frameworks(origin: str, agent: str) -> Iterator[pieces.View]:
    """Return the program of each framework."""
    for name, label in FRAMEWORKS.items():
        install = f"# Needs the extra: {name}\n# Use your own model.\n"
        yield snippet(name, label, install + framework(name, origin, agent))
