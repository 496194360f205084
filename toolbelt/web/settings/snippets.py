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

# The frameworks of docs/how-to/use-with-frameworks.md, in its order.
FRAMEWORKS = {
    "langchain": "LangChain",
    "pydantic-ai": "Pydantic AI",
    "openai-agents": "OpenAI Agents",
    "google-adk": "Google ADK",
}


def snippet(name: str, label: str, text: str, **about: Any) -> pieces.View:
    """Return a piece of code with its label; ``id`` is its place in the page, for the button that copies it."""
    return pieces.View(id=f"snippet-{name}", label=label, text=text, **about)


def render(template: str, **values: str | bool) -> str:
    """Return the code in a template of this page."""
    return loader.render_to_string(f"settings/{template}.txt", values).strip() + "\n"


def issue(agent: str) -> pieces.View:
    """Return the command that issues a token."""
    command = f"{conf.COMMAND} token issue --agent {shlex.quote(agent)} --days 90"
    return snippet("issue", "Shell", command)


def languages(address: str, tool: str) -> Iterator[pieces.View]:
    """Return code that asks for tools and calls one, in each language; ``address`` is the agent's in the API."""
    asked = urlencode({"session": "s1", "format": "openai_chat"})
    curl = render(
        "languages/curl",
        surface_url=shlex.quote(f"{address}surface?{asked}"),
        call=shlex.quote(json.dumps({"session": "s1", "tool": tool, "arguments": {}})),
        calls_url=shlex.quote(f"{address}calls"),
    )
    yield snippet("curl", "curl", curl)
    yield snippet("python", "Python", render("languages/python", address=repr(address), tool=repr(tool)))


def framework(name: str, origin: str, agent: str) -> str:
    """Return a whole program for a framework, an agent, and the Toolbelt at ``origin``; ``model`` is left open."""
    return render(f"frameworks/{name}", address=json.dumps(origin), agent=json.dumps(agent))


def frameworks(origin: str, agent: str) -> Iterator[pieces.View]:
    """Return the program of each framework."""
    for name, label in FRAMEWORKS.items():
        install = f"# Needs the extra: {name}\n# The model is yours.\n"
        yield snippet(name, label, install + framework(name, origin, agent))
