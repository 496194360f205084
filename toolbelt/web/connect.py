"""The Connect page, which creates a token and inserts it into the command that connects.

As on the page of tokens, the text of a token is only in the response to the form that creates it.
"""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.template import loader
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control.agents import mcp_clients
from toolbelt.control.people import rights, tokens
from toolbelt.control.reports import queries
from toolbelt.core import agent_addresses, policy, surface, tool_lists
from toolbelt.web import agents
from toolbelt.web import tokens as tokens_page
from toolbelt.web.kit import http, pieces, responses, words

LANGUAGES = {"curl": "curl", "python": "Python"}
# The frameworks of docs/how-to/use-with-frameworks.md, in its order.
FRAMEWORKS = {
    "langchain": "LangChain",
    "pydantic-ai": "Pydantic AI",
    "openai-agents": "OpenAI Agents",
    "google-adk": "Google ADK",
}
# The most tools that are named; the others are counted.
MAX_NAMED = 20
# How long after the creation of a token the page polls for its first request.
MAX_WAIT = dt.timedelta(minutes=15)
_ISSUE = rights.permission("add", "api_token")


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the ways to connect, with the name of a variable instead of a token."""
    return _render(request, agent, request.GET.get("way", ""))


@require_POST
@permission_required(_ISSUE, raise_exception=True)
@responses.require_read("api_token")
def issue(request: http.Request, agent: str) -> HttpResponse:
    """Create a token of the agent, and show it once, inserted into the chosen way to connect."""
    way, days = request.POST.get("way", ""), request.POST.get("days", "")
    labels = {client.id: client.label for client in mcp_clients.CLIENTS} | LANGUAGES | FRAMEWORKS
    form = tokens_page.Token({"owner": "agent", "agent": agent, "name": labels.get(way, ""), "days": days})
    responses.declare(request, reverse("web:connect", args=[agent]), refusal="No token was created")
    issued = tokens.issue(responses.write(request), **form.arguments(request.user.get_username()))
    return _render(request, agent, way, issued)


@require_safe
@responses.require_read("api_token")
def first_request(request: http.Request, agent: str) -> HttpResponse:
    """Show whether a request with the token was received; 204 for a page that still polls."""
    status = _first_request(agent, request.GET.get("token", ""))
    if status is None:
        raise Http404
    if status.is_polled and request.htmx:
        return HttpResponse(status=204)
    return render(
        request, "connect/_first_request.html", {"page": {"agent": {"key": agent}, "status": status}}
    )


def _render(
    request: http.Request, agent: str, chosen: str, issued: tokens.Issued | None = None
) -> HttpResponse:
    return responses.show(
        request, _Page(request, agent, chosen, issued), "connect/connect.html", "connect/_connect.html"
    )


class _Page(pieces.Page):
    """The ways to connect an agent."""

    def __init__(
        self, request: http.Request, agent: str, chosen: str, issued: tokens.Issued | None = None
    ) -> None:
        user, settings = request.user, queries.settings(agent)
        # The agent's URL in the API, as this browser reaches it.
        surface_url = request.build_absolute_uri(reverse("api:get_surface", args=[agent]))
        address, origin = surface_url.removesuffix("surface"), surface_url.rpartition("/api/v1/")[0]
        definitions = (*settings.surface.tools, *settings.surface.meta_tools)
        ways = {
            "MCP clients": list(configurations(origin, agent, settings.surface)),
            "HTTP API": list(languages(address, definitions[0].name if definitions else "a_tool")),
            "Frameworks": list(frameworks(origin, agent)),
        }
        if issued is not None:
            ways = {title: [way.with_token(issued.text) for way in group] for title, group in ways.items()}
        names = [way.name for group in ways.values() for way in group]
        may_see_tokens = rights.may_read(user, "api_token")
        prefix = issued.token.prefix if issued else request.GET.get("token", "")
        self.agent = agents.PageHeader(settings.summary)
        self.ways = ways
        self.chosen = chosen if chosen in names else names[0]
        self.issued = issued
        self.command = f"{conf.COMMAND} token issue --agent {shlex.quote(agent)} --days 90"
        self.address = f"{origin}{agent_addresses.ENDPOINT}/{agent}"
        self.may_use = rights.may_use(user, agent)
        self.may_change = rights.may_flip(user, agent)
        self.may_issue = may_see_tokens and user.has_perm(_ISSUE)
        self.status = _first_request(agent, prefix) if may_see_tokens else None
        self.days = tokens_page.Token.empty(agent)["days"]


class FirstRequest(pieces.View):
    """Whether a token was used, and whether its page still polls for the first request."""

    def __init__(self, token: tokens.Token, now: dt.datetime) -> None:
        self.token = token
        self.is_waiting = token.last_used is None
        self.is_polled = self.is_waiting and now - token.created < MAX_WAIT


def _first_request(agent: str, prefix: str = "") -> FirstRequest | None:
    """Return whether the token with this prefix was used, or without a prefix the agent's newest valid token; None if
    there is no such token.
    """
    now = timezone.now()
    for token in tokens.of_agent(agent):
        if token.prefix == prefix or (not prefix and token.is_valid(now)):
            return FirstRequest(token, now)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to connect: ``why`` its client loads tools as it does, and whether the text contains a token instead of the
    name of a variable (``has_token``).
    """

    name: str
    label: str
    text: str
    why: str = ""
    client: mcp_clients.Client | None = None
    warnings: tuple[str, ...] = ()
    has_token: bool = False

    def with_token(self, token: str) -> Way:
        """Return it with the token in its text."""
        text = self.text.replace("$TOOLBELT_TOKEN", token).replace("YOUR_TOKEN", token)
        return replace(self, text=text, has_token=text != self.text)


def _code(template: str, **values: str | bool) -> str:
    """Return the code of a template of this page."""
    return loader.render_to_string(f"connect/{template}.txt", values).strip() + "\n"


def languages(address: str, tool: str) -> Iterator[Way]:
    """Yield code in each language that requests tools and calls one; ``address`` is the agent's URL in the API."""
    query = urlencode({"session": "s1", "format": "openai_chat"})
    curl = _code(
        "languages/curl",
        surface_url=shlex.quote(f"{address}surface?{query}"),
        call=shlex.quote(json.dumps({"session": "s1", "tool": tool, "arguments": {}})),
        calls_url=shlex.quote(f"{address}calls"),
    )
    python = _code("languages/python", address=repr(address), tool=repr(tool))
    for name, text in (("python", python), ("curl", curl)):
        yield Way(name=name, label=LANGUAGES[name], text=text)


def framework(name: str, origin: str, agent: str) -> str:
    """Return a program for a framework, an agent, and the Toolbelt at ``origin``; ``model`` is left to the user."""
    return _code(f"frameworks/{name}", address=json.dumps(origin), agent=json.dumps(agent))


def frameworks(origin: str, agent: str) -> Iterator[Way]:
    """Yield the program for each framework."""
    for name, label in FRAMEWORKS.items():
        install = f"# Needs the extra: {name}\n# Use your own model.\n"
        yield Way(name=name, label=label, text=install + framework(name, origin, agent))


def configurations(origin: str, agent: str, result: surface.Surface) -> Iterator[Way]:
    """Yield the configuration of each client; ``origin`` is the URL of this installation in the browser.

    ``result`` is the agent's surface, for the warnings.
    """
    for client in mcp_clients.CLIENTS:
        loading = mcp_clients.loading(client, result.resolution.context.agent.mcp_loading)
        yield Way(
            name=client.id,
            label=client.label,
            text=mcp_clients.text(client, origin, agent, loading=loading.in_address),
            why=loading.why,
            client=client,
            warnings=(*_cut_instructions(client, result.policy), *_long_names(client, result)),
        )


def cut_instructions(agent_policy: policy.Policy) -> tuple[str, ...]:
    """Return a warning for each client that cuts off this policy."""
    return tuple(line for client in mcp_clients.CLIENTS for line in _cut_instructions(client, agent_policy))


def _cut_instructions(client: mcp_clients.Client, agent_policy: policy.Policy) -> Iterator[str]:
    # Most clients are written in JavaScript, so they count UTF-16 code units.
    length = len(policy.text_by_importance(agent_policy).encode("utf-16-le")) // 2
    limit = client.max_instructions_length
    if limit is not None and length > limit:
        yield (
            f"{client.label} reads the first {words.number(limit)} characters of the policy, which has"
            f" {words.number(length)}. Policies of toolkits that are on come first; the rest is cut off. The resource"
            " toolbelt://policy contains all of it."
        )


def _long_names(client: mcp_clients.Client, result: surface.Surface) -> Iterator[str]:
    loading = result.resolution.context.agent.mcp_loading
    definitions = tool_lists.of(result, tool_lists.form(loading, has_session=True, may_grow=True)).tools
    maximum = client.max_name_length - len(client.prefix)
    names = [definition.name for definition in definitions if len(definition.name) > maximum]
    if names:
        verb, be = ("has a name", "is") if len(names) == 1 else ("have names", "are")
        yield (
            f"{words.tools(len(names)).capitalize()} {verb} that {be} too long for {client.label}, which puts"
            f" {client.prefix} in front and takes {client.max_name_length} characters:"
            f" {words.listing(names, MAX_NAMED)}. Use a shorter name than {mcp_clients.NAME} there, or shorter keys."
        )
