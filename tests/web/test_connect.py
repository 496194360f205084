"""Tests that the Connect tab shows a new token once, in each client's instructions, and its first request."""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
import tomllib
from html import unescape
from typing import Any

import httpx
import pytest
from django.contrib.auth import models as auth
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import resolve
from django.utils import timezone

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.agents import agents, mcp_clients
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.runtime import credentials
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

CONNECT = "/agents/ada/connect/"
ISSUE = f"{CONNECT}token/"
FIRST_REQUEST = f"{CONNECT}first-request/"


def open_page(browser: Client) -> Any:
    return browser.get(CONNECT).context["page"]


def ways(page: Any) -> dict[str, Any]:
    """Return the ways to connect that a page offers, by label."""
    return {way.label: way for group in page.ways.values() for way in group}


def shown_texts(response: Any) -> dict[str, str]:
    """Return the full text of each way to connect in a response, by label."""
    html, texts = response.content.decode(), {}
    for label, way in ways(response.context["page"]).items():
        shown = re.findall(rf'<pre id="(?:token|way)-{way.name}"[^>]*><code>(.*?)</code>', html, re.DOTALL)
        texts[label] = "".join(map(unescape, shown))
    return texts


@pytest.fixture
def token_issuer(operator: Client, olive: auth.User) -> Client:
    """Return the browser of a user who may issue tokens."""
    names = ["view_apitoken", "add_apitoken"]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=names))
    return operator


@pytest.mark.parametrize("htmx", [True, False])
def test_a_new_token_appears_in_each_clients_instructions(token_issuer: Client, htmx: bool) -> None:
    response = dashboard.post(token_issuer, ISSUE, htmx=htmx, way="cursor", days="30")
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "private, no-store"
    page = response.context["page"]
    bearer = credentials.recognize(page.issued.text)
    assert bearer is not None
    assert (bearer.agent, page.issued.token.name, page.chosen) == ("ada", "Cursor", "cursor")
    assert page.issued.token.expires < timezone.now() + dt.timedelta(days=30, hours=1)
    texts = shown_texts(response)
    assert {label: text.count(page.issued.text) for label, text in texts.items()} == {
        **dict.fromkeys(texts, 1),
        "curl": 2,
    }
    assert texts["Claude Code"].endswith(f'  --header "Authorization: Bearer {page.issued.text}"\n')
    assert texts["Cursor"].startswith(f"export TOOLBELT_TOKEN={page.issued.text}\n")
    assert texts["VS Code"].startswith(page.issued.text)
    assert f'"Authorization": "Bearer {page.issued.text}"' in texts["Cline"]
    assert "YOUR_TOKEN" not in "".join(texts.values())
    assert page.issued.text in response.content.decode()


def test_a_token_is_absent_from_later_pages_the_log_and_sessions(token_issuer: Client) -> None:
    text = dashboard.post(token_issuer, ISSUE, way="claude-code", days="90").context["page"].issued.text
    for address in (CONNECT, "/tokens/", "/audit/", "/"):
        assert text not in token_issuer.get(address).content.decode()
    entry = dashboard.latest_entry()
    assert (entry.action, entry.actor) == ("token.issue", "olive")
    assert text not in json.dumps([entry.after, entry.before])
    assert all(text not in str(session.get_decoded()) for session in Session.objects.all())


def test_instructions_use_a_variable_without_permission_to_create_tokens(operator: Client) -> None:
    assert operator.post(ISSUE, {"way": "claude-code", "days": "90"}).status_code == 403
    html = dashboard.text(operator.get(CONNECT))
    assert "Issue token" not in html
    assert "$TOOLBELT_TOKEN" in html
    assert operator.get(FIRST_REQUEST).status_code == 403
    assert not models.ApiToken.objects.exists()


def test_an_unknown_client_or_lifetime_creates_no_token(token_issuer: Client) -> None:
    assert token_issuer.get(f"{CONNECT}?way=telegraph").context["page"].chosen == "claude-code"
    response = dashboard.post(token_issuer, ISSUE, htmx=False, way="telegraph", days="1000000")
    assert response.status_code == 303
    assert not models.ApiToken.objects.exists()


def test_the_page_polls_until_the_token_is_first_used(token_issuer: Client) -> None:
    issued = tokens.issue(OPERATOR, agent="ada")
    poll_url = f"{FIRST_REQUEST}?token={issued.token.prefix}"
    assert f'hx-get="{poll_url}"' in token_issuer.get(CONNECT).content.decode()
    assert token_issuer.get(poll_url, headers=dashboard.HTMX).status_code == 204
    assert "Waiting" in token_issuer.get(poll_url).content.decode()
    assert credentials.recognize(issued.text) is not None
    credentials.write_uses()
    html = token_issuer.get(poll_url, headers=dashboard.HTMX).content.decode()
    assert '<p class="state" data-state="active">Connected</p>' in html
    assert "hx-get" not in html


def test_polling_stops_after_a_timeout(token_issuer: Client) -> None:
    issued = tokens.issue(OPERATOR, agent="ada")
    models.ApiToken.objects.update(created=timezone.now() - dt.timedelta(minutes=16))
    response = token_issuer.get(f"{FIRST_REQUEST}?token={issued.token.prefix}", headers=dashboard.HTMX)
    assert response.status_code == 200
    assert "No request yet" in response.content.decode()
    assert "hx-get" not in response.content.decode()


def test_another_agents_token_is_not_found(token_issuer: Client) -> None:
    others = tokens.issue(OPERATOR, agent="bob")
    assert token_issuer.get(f"{FIRST_REQUEST}?token={others.token.prefix}").status_code == 404


def test_an_archived_agent_gets_no_token(token_issuer: Client) -> None:
    entries.change(OPERATOR.replace(confirm=True), "agent", "ada", {"archived": True})
    html = token_issuer.get(CONNECT).content.decode()
    assert "Issue token" not in html
    assert "This agent is archived." in html


def test_snippets_contain_the_agents_urls(operator: Client) -> None:
    page = open_page(operator)
    assert page.command == ".venv/bin/python manage.py token issue --agent ada --days 90"
    curl = ways(page)["curl"].text
    paths = re.findall(r"http://testserver(/[^?'\s]+)", curl)
    assert [resolve(path).url_name for path in paths] == ["get_surface", "call_tool"]


def respond_locally(request: httpx.Request) -> httpx.Response:
    """Return this installation's response to an httpx request, without a server."""
    response = Client().generic(
        request.method,
        request.url.raw_path.decode(),
        request.content,
        request.headers["Content-Type"],
        headers={"Authorization": request.headers["Authorization"]},
    )
    return httpx.Response(response.status_code, content=response.content, request=request)


def test_the_python_snippet_runs(operator: Client, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    issued = tokens.issue(OPERATOR, agent="ada")
    monkeypatch.setenv("TOOLBELT_TOKEN", issued.text)
    transport = httpx.MockTransport(respond_locally)
    monkeypatch.setattr(httpx, "Client", functools.partial(httpx.Client, transport=transport))
    code = ways(open_page(operator))["Python"].text
    exec(compile(code, "snippet", "exec"), {})  # noqa: S102 (the snippet is from the page under test)
    output = capsys.readouterr().out
    assert output.startswith("['clock__now', 'github__issue_read'")
    assert "is_error" in output


def test_mcp_client_configurations_have_the_agents_url_and_no_token(operator: Client) -> None:
    offered = {label: way.text for label, way in ways(open_page(operator)).items() if way.client}
    written = {
        label: json.loads(text) for label, text in offered.items() if label not in ("Claude Code", "Codex")
    }
    url, claude = "http://testserver/mcp/ada", offered["Claude Code"]
    constant = f"{url}?loading=constant"
    assert claude.startswith(f"claude mcp add --transport http toolbelt {url} ")
    assert claude.endswith('  --header "Authorization: Bearer $TOOLBELT_TOKEN"\n')
    (token_input,) = written["VS Code"]["inputs"]
    assert token_input["password"] is True
    assert tomllib.loads(offered["Codex"])["mcp_servers"]["toolbelt"] == {
        "url": url,
        "bearer_token_env_var": "TOOLBELT_TOKEN",
    }

    def sent(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    assert {
        label: written_file.get("mcpServers", {}).get("toolbelt") for label, written_file in written.items()
    } == {
        "Cursor": {"url": constant, "headers": sent("${env:TOOLBELT_TOKEN}")},
        "VS Code": None,
        "Gemini CLI": {"httpUrl": constant, "headers": sent("${TOOLBELT_TOKEN}")},
        "Copilot CLI": {"type": "http", "url": constant, "headers": sent("YOUR_TOKEN"), "tools": ["*"]},
        "opencode": None,
        "Cline": {"type": "streamableHttp", "url": constant, "headers": sent("YOUR_TOKEN")},
        "Claude Desktop": {
            "command": "npx",
            "args": [
                *("-y", "mcp-remote", constant, "--transport", "http-only"),
                *("--header", "Authorization:${AUTH_HEADER}", "--allow-http"),
            ],
            "env": {"AUTH_HEADER": "Bearer YOUR_TOKEN"},
        },
    }
    assert written["VS Code"]["servers"]["toolbelt"]["headers"] == sent(f"${{input:{token_input['id']}}}")
    assert written["opencode"]["mcp"]["servers"]["toolbelt"] == {
        "type": "remote",
        "url": constant,
        "oauth": False,
        "headers": sent("{env:TOOLBELT_TOKEN}"),
    }


def test_each_client_says_why_it_loads_tools_as_it_does(operator: Client) -> None:
    shown = ways(open_page(operator))
    reasons = {label: way.why for label, way in shown.items() if way.client}
    assert "appends" in reasons["Claude Code"]
    assert "full price" in reasons["Codex"]
    assert "loading=constant" in reasons["Cursor"]
    assert unescape(reasons["Cursor"]) in unescape(dashboard.text(operator.get(CONNECT)))
    for loading in ("list", "constant"):
        agents.edit(OPERATOR, "ada", changes={"mcp_loading": loading})
        shown = ways(open_page(operator))
        assert all(f"settings say: {loading}" in way.why for way in shown.values() if way.client)
        assert "?loading" not in "".join(way.text for way in shown.values())


def warnings(browser: Client) -> dict[str, tuple[str, ...]]:
    """Return the warnings of each client that has any."""
    return {
        label: way.warnings for label, way in ways(open_page(browser)).items() if way.client and way.warnings
    }


def test_only_mcp_clients_are_said_to_get_no_directive(operator: Client) -> None:
    shown = operator.get("/agents/ada/connect/").content.decode().split('<div class="way way-')[1:]
    without = [way.partition('"')[0] for way in shown if "no directive" in way]
    assert without == [client.id for client in mcp_clients.CLIENTS]


def test_a_client_that_truncates_the_policy_has_a_warning(operator: Client) -> None:
    assert warnings(operator) == {}
    issues = {**entries.read("toolkit", "issues"), "policy": "x" * 2048}
    belts.import_(OPERATOR, {"toolkits": [issues]})
    (warning,) = warnings(operator)["Claude Code"]
    assert warning.startswith("Claude Code reads the first 2,048 characters of the policy, which has 2,")
    assert list(warnings(operator)) == ["Claude Code"]
    page = operator.get(CONNECT).content.decode()
    assert "toolbelt://policy" in page
    for view, is_warned in (("view=policy", True), ("view=json&format=mcp", True), ("view=tools", False)):
        preview = operator.get(f"/agents/ada/preview/?{view}").content.decode()
        assert ("Claude Code reads the first 2,048" in preview) is is_warned


def test_tool_names_too_long_with_a_clients_prefix_have_a_warning(operator: Client) -> None:
    fits, long = "a" * 49, "b" * 50
    belts.import_(
        OPERATOR,
        {
            "plugins": [{"name": "long", "in_code": True}],
            "tools": [
                {"key": key, "plugin": "long", "description": "Is long.", "default_on": True}
                for key in (fits, long)
            ],
        },
    )
    (warning,) = warnings(operator)["Claude Code"]
    assert warning.startswith(
        "1 tool has a name that is too long for Claude Code, which puts mcp__toolbelt__"
    )
    assert long in warning
    assert fits not in warning
    assert "Copilot CLI" not in warnings(operator)


def test_framework_snippets_have_the_agents_url_and_compile(operator: Client) -> None:
    """`make interop` runs the snippets, with the frameworks installed."""
    offered = open_page(operator).ways["Frameworks"]
    assert [way.label for way in offered] == ["LangChain", "Pydantic AI", "OpenAI Agents", "Google ADK"]
    for way in offered:
        assert 'http.Http("http://testserver", "ada", os.environ[' in way.text
        compile(way.text, way.name, "exec")
