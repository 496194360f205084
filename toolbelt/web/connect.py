"""The Connect page: a token is created and inserted into the command that connects.

As on the page of tokens, its text is in the response to the form that creates it, and nowhere else.
"""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Iterator

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
from toolbelt.core import policy, surface, tool_lists
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
# More tools than these are counted, and not named.
MAX_NAMED = 20
# The page asks for this long after the token was created whether it was used.
WAIT = dt.timedelta(minutes=15)
_ISSUE = rights.permission("add", "api_token")


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the ways to connect, with the name of a variable in place of the token."""
    return _shown(request, agent, request.GET.get("way", ""))


@require_POST
@permission_required(_ISSUE, raise_exception=True)
@responses.reading("api_token")
def issue(request: http.Request, agent: str) -> HttpResponse:
    """Create a token of the agent, and show it once, where it belongs in the chosen way to connect."""
    way, days = request.POST.get("way", ""), request.POST.get("days", "")
    labels = {client.id: client.label for client in mcp_clients.CLIENTS} | LANGUAGES | FRAMEWORKS
    form = tokens_page.Token({"owner": "agent", "agent": agent, "name": labels.get(way, ""), "days": days})
    responses.declare(request, reverse("web:connect", args=[agent]), undone="No token was created")
    issued = tokens.issue(responses.write(request), **form.arguments(request.user.get_username()))
    return _shown(request, agent, way, issued)


@require_safe
@responses.reading("api_token")
def first_request(request: http.Request, agent: str) -> HttpResponse:
    """Show whether a request with the token has come; to a page that still waits, with nothing to swap in."""
    status = _first_request(agent, request.GET.get("token", ""))
    if status is None:
        raise Http404
    if status.is_polled and request.htmx:
        return HttpResponse(status=204)
    shown = pieces.View(agent=pieces.View(key=agent), status=status)
    return render(request, "connect/_first_request.html", {"page": shown})


def _shown(
    request: http.Request, agent: str, chosen: str, issued: tokens.Issued | None = None
) -> HttpResponse:
    user, settings = request.user, queries.settings(agent)
    # The agent's address in the API, as this browser would reach it.
    surface = request.build_absolute_uri(reverse("api:get_surface", args=[agent]))
    address, origin = surface.removesuffix("surface"), surface.rpartition("/api/v1/")[0]
    listed = (*settings.surface.tools, *settings.surface.meta_tools)
    ways = {
        "MCP clients": list(configurations(origin, agent, settings.surface)),
        "HTTP API": list(languages(address, listed[0].name if listed else "a_tool")),
        "Frameworks": list(frameworks(origin, agent)),
    }
    every = [way for group in ways.values() for way in group]
    if issued is not None:
        for way in every:
            _put_token(way, issued.text)
    names = [way.name for way in every]
    may_see_tokens = rights.may_read(user, "api_token")
    prefix = issued.token.prefix if issued else request.GET.get("token", "")
    shown = pieces.View(
        agent=agents.present(settings.summary),
        ways=ways,
        chosen=chosen if chosen in names else names[0],
        issued=issued,
        command=f"{conf.COMMAND} token issue --agent {shlex.quote(agent)} --days 90",
        may_change=rights.may_flip(user, agent),
        may_issue=may_see_tokens and user.has_perm(_ISSUE),
        status=_first_request(agent, prefix) if may_see_tokens else None,
        days=tokens_page.Token.empty(agent)["days"],
    )
    return responses.show(request, shown, "connect/connect.html", "connect/_connect.html")


def _first_request(agent: str, prefix: str = "") -> pieces.View | None:
    """Return whether the token with this prefix was used, or else the newest one of the agent that is valid; None if
    there is none.
    """
    now = timezone.now()
    for token in tokens.of_agent(agent):
        if token.prefix == prefix or (not prefix and token.is_valid(now)):
            is_waiting = token.last_used is None
            return pieces.View(
                token=token, is_waiting=is_waiting, is_polled=is_waiting and now - token.created < WAIT
            )
    return None


def _put_token(way: pieces.View, token: str) -> None:
    """Put the token into the text of a way to connect, if that is where it belongs (``has_token``)."""
    text = way.text.replace("$TOOLBELT_TOKEN", token).replace("YOUR_TOKEN", token)
    way.has_token, way.text = text != way.text, text


def _code(template: str, **values: str | bool) -> str:
    """Return the code in a template of this page."""
    return loader.render_to_string(f"connect/{template}.txt", values).strip() + "\n"


def languages(address: str, tool: str) -> Iterator[pieces.View]:
    """Return code that asks for tools and calls one, in each language; ``address`` is the agent's in the API."""
    asked = urlencode({"session": "s1", "format": "openai_chat"})
    curl = _code(
        "languages/curl",
        surface_url=shlex.quote(f"{address}surface?{asked}"),
        call=shlex.quote(json.dumps({"session": "s1", "tool": tool, "arguments": {}})),
        calls_url=shlex.quote(f"{address}calls"),
    )
    python = _code("languages/python", address=repr(address), tool=repr(tool))
    for name, text in (("python", python), ("curl", curl)):
        yield pieces.View(name=name, label=LANGUAGES[name], text=text)


def framework(name: str, origin: str, agent: str) -> str:
    """Return a whole program for a framework, an agent, and the Toolbelt at ``origin``; ``model`` is left open."""
    return _code(f"frameworks/{name}", address=json.dumps(origin), agent=json.dumps(agent))


def frameworks(origin: str, agent: str) -> Iterator[pieces.View]:
    """Return the program of each framework."""
    for name, label in FRAMEWORKS.items():
        install = f"# Needs the extra: {name}\n# Use your own model.\n"
        yield pieces.View(name=name, label=label, text=install + framework(name, origin, agent))


def configurations(origin: str, agent: str, answer: surface.Surface) -> Iterator[pieces.View]:
    """Return the configuration of each client; ``origin`` is this installation's, as the browser reaches it.

    ``answer`` is what the agent's model gets, for the warnings.
    """
    for client in mcp_clients.CLIENTS:
        yield pieces.View(
            name=client.id,
            label=client.label,
            text=mcp_clients.text(client, origin, agent),
            client=client,
            warnings=(*_cut_instructions(client, answer.policy), *_long_names(client, answer)),
        )


def cut_instructions(given: policy.Policy) -> tuple[str, ...]:
    """Return a sentence for each client that cuts this policy."""
    return tuple(sentence for client in mcp_clients.CLIENTS for sentence in _cut_instructions(client, given))


def _cut_instructions(client: mcp_clients.Client, given: policy.Policy) -> Iterator[str]:
    # As clients count, most of which are written in JavaScript: in units of UTF-16.
    length = len(policy.text_by_importance(given).encode("utf-16-le")) // 2
    limit = client.max_instructions_length
    if limit is not None and length > limit:
        yield (
            f"{client.label} reads the first {words.number(limit)} characters of the policy, which has"
            f" {words.number(length)}. Policies of toolkits that are on come first; the rest is cut off. The resource"
            " toolbelt://policy contains all of it."
        )


def _long_names(client: mcp_clients.Client, answer: surface.Surface) -> Iterator[str]:
    listed = tool_lists.of(answer, answer.resolution.context.agent.mcp_loading).tools
    maximum = client.max_name_length - len(client.prefix)
    names = [definition.name for definition in listed if len(definition.name) > maximum]
    if names:
        more = f" and {words.number(len(names) - MAX_NAMED)} more" if len(names) > MAX_NAMED else ""
        has, its = ("has a name", "is") if len(names) == 1 else ("have names", "are")
        yield (
            f"{words.tools(len(names)).capitalize()} {has} that {its} too long for {client.label}, which puts"
            f" {client.prefix} in front and takes {client.max_name_length} characters:"
            f" {', '.join(names[:MAX_NAMED])}{more}. Use a shorter name than {mcp_clients.NAME} there, or shorter keys."
        )
