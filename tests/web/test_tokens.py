"""Tests of the API tokens page: its permissions, and issuing and revoking tokens."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from tests.web import dashboard
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import tokens
from toolbelt.runtime import credentials
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

TOKENS = "/tokens/"
ISSUE = "/tokens/issue/"


def open_page(browser: Client, **query: Any) -> Any:
    return browser.get(TOKENS, query).context["page"]


@pytest.fixture
def token_manager(operator: Client, olive: auth.User) -> Client:
    """Return the browser of a user who may issue and revoke tokens."""
    names = ["view_apitoken", "add_apitoken", "change_apitoken"]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=names))
    return operator


def issue_for_ada(name: str = "", days: float | None = None) -> tokens.Issued:
    expires = timezone.now() + dt.timedelta(days=days) if days else None
    return tokens.issue(OPERATOR, agent="ada", name=name, expires=expires)


def test_each_token_shows_its_owner_and_state(token_manager: Client) -> None:
    issue_for_ada("Nightly build", days=30)
    soon = issue_for_ada(days=2)
    tokens.issue(writing.by("olive", via="screen"), user="olive", scope="write", name="Mine")
    over = issue_for_ada("Old")
    models.ApiToken.objects.filter(prefix=over.token.prefix).update(
        expires=timezone.now() - dt.timedelta(days=1), last_used=timezone.now() - dt.timedelta(hours=3)
    )
    tokens.revoke(OPERATOR, issue_for_ada("Lost").token.prefix)
    page = open_page(token_manager)
    states = {
        (line.token.agent, line.token.user, line.scope, line.token.name, line.state) for line in page.tokens
    }
    assert states == {
        ("", "olive", "Read and write", "Mine", "valid"),
        ("ada", "", "", "", "expires soon"),
        ("ada", "", "", "Nightly build", "valid"),
    }
    inactive = {(line.token.name, line.state) for line in page.inactive}
    assert inactive == {("Lost", "revoked"), ("Old", "expired")}
    assert page.matches == "3 valid of 5"
    html = token_manager.get(TOKENS).content.decode()
    assert re.findall(r"expires <time[^>]*>([^<]+)", html) == ["in 2 d", "in 30 d"]
    assert re.findall(r"used <time[^>]*>([^<]+)", html) == ["3 h ago"]
    assert len(re.findall(r"expired <time", html)) == 1
    assert len(re.findall(r"revoked <time", html)) == 1
    assert soon.text not in html


def test_a_token_says_who_issued_it_and_for_whom(token_manager: Client) -> None:
    issue_for_ada()
    tokens.issue(writing.by("root", via="command"), user="olive", scope="read")
    token = issue_for_ada("Older").token
    models.ApiToken.objects.filter(prefix=token.prefix).update(issued_by="")
    html = dashboard.text(token_manager.get(TOKENS))
    assert f"issued by {OPERATOR.actor.name} <time" in html
    assert "issued by root <time" in html
    assert "issued by an unknown person <time" in html
    assert [line.token.user for line in open_page(token_manager, q="root").tokens] == ["olive"]


def test_tokens_of_a_deactivated_user_or_an_archived_agent_are_not_valid(
    token_manager: Client, olive: auth.User
) -> None:
    sam = auth.User.objects.create(username="sam", is_active=False)
    of_sam = tokens.issue(writing.by("root", via="command"), user=sam.username, scope="read").token
    of_ada = issue_for_ada(days=30).token
    models.Agent.objects.filter(key="ada").update(archived=True)
    page = open_page(token_manager)
    assert page.tokens == ()
    assert {(line.token.prefix, line.state) for line in page.inactive} == {
        (of_sam.prefix, "not valid: its user is deactivated"),
        (of_ada.prefix, "not valid: its agent is archived"),
    }
    html = dashboard.text(token_manager.get(TOKENS))
    assert "2 no longer valid" in html
    # They would be valid again, so they can still be revoked.
    assert html.count("Revoke token<") == 2
    sam.is_active = True
    sam.save()
    assert [line.state for line in open_page(token_manager).tokens] == ["valid"]


@pytest.mark.parametrize("htmx", [True, False])
def test_a_new_token_is_shown_once_and_never_stored(token_manager: Client, htmx: bool) -> None:
    fields = {"owner": "agent", "agent": "ada", "name": "Chat", "days": "30"}
    response = dashboard.post(token_manager, ISSUE, htmx=htmx, **fields)
    assert response.status_code == 200
    issued = response.context["page"].issued
    assert issued.text in response.content.decode()
    assert response.headers["Cache-Control"] == "private, no-store"
    bearer = credentials.recognize(issued.text)
    assert bearer is not None
    assert bearer.agent == "ada"
    (token,) = tokens.all_tokens()
    assert token.name == "Chat"
    assert token.expires is not None
    assert round((token.expires - timezone.now()).total_seconds() / 86400) == 30
    assert issued.text not in token_manager.get(TOKENS).content.decode()
    assert not any(issued.text in str(session.get_decoded()) for session in Session.objects.all())
    assert issued.text not in str(dashboard.latest_entry().after)
    assert dashboard.latest_entry().actor == "olive"
    if htmx:
        assert "<html" not in response.content.decode()


def test_a_personal_token_belongs_to_its_creator(token_manager: Client) -> None:
    dashboard.post(token_manager, ISSUE, owner="me", agent="ada", scope="write", days="")
    (token,) = tokens.all_tokens()
    assert (token.user, token.agent, token.scope, token.expires) == ("olive", "", "write", None)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"owner": "agent"}, "agent"),
        ({"owner": "agent", "agent": "nobody"}, "agent"),
        ({"owner": "me"}, "scope"),
        ({"owner": "otto"}, "owner"),
        ({}, "owner"),
        ({"owner": "agent", "agent": "ada", "name": "x" * 101}, "name"),
        ({"owner": "agent", "agent": "ada", "days": "0"}, "days"),
    ],
)
@pytest.mark.parametrize("htmx", [True, False])
def test_invalid_input_is_reported_at_its_field(
    token_manager: Client, fields: dict[str, str], field: str, htmx: bool
) -> None:
    response = dashboard.post(token_manager, ISSUE, htmx=htmx, **fields)
    assert response.status_code == 422
    form = response.context["page"].form
    assert list(form.errors) == [field]
    assert form["name"].value() == fields.get("name")
    assert tokens.all_tokens() == []


@pytest.mark.parametrize("htmx", [True, False])
def test_revoking_a_token_requires_confirmation(token_manager: Client, htmx: bool) -> None:
    issued = issue_for_ada()
    response = dashboard.post(token_manager, f"/tokens/{issued.token.prefix}/revoke/", htmx=htmx)
    question = response.context["confirmation"]
    assert question.title == f"Revoke token {issued.token.prefix}?"
    assert credentials.recognize(issued.text) is not None


@pytest.mark.parametrize("htmx", [True, False])
def test_a_revoked_token_is_rejected(token_manager: Client, htmx: bool) -> None:
    issued, other = issue_for_ada(), issue_for_ada()
    address = f"/tokens/{issued.token.prefix}/revoke/"
    response = dashboard.post(token_manager, address, htmx=htmx, confirm="yes", reason="It leaked.")
    assert credentials.recognize(issued.text) is None
    assert credentials.recognize(other.text) is not None
    entry = dashboard.latest_entry()
    assert (entry.action, entry.reason, entry.via) == ("token.revoke", "It leaked.", "screen")
    if not htmx:
        assert (response.status_code, response.headers["Location"]) == (303, TOKENS)
    page = response.context["page"] if htmx else open_page(token_manager)
    assert page.notice.text == f"Token {issued.token.prefix} of agent ada revoked."
    assert [line.token.prefix for line in page.inactive] == [issued.token.prefix]


def test_revoking_an_unknown_token_is_not_found(token_manager: Client) -> None:
    assert dashboard.post(token_manager, "/tokens/tb_nothing/revoke/", confirm="yes").status_code == 404


def test_tokens_are_searched_by_name_owner_and_prefix(token_manager: Client) -> None:
    issued = issue_for_ada("Nightly build")
    tokens.issue(OPERATOR, agent="bob", name="Chat")
    for query in ("NIGHTLY", "ada", issued.token.prefix[:8]):
        assert [line.token.name for line in open_page(token_manager, q=query).tokens] == ["Nightly build"]
    html = dashboard.text(token_manager.get(TOKENS, {"q": "nothing"}, headers=dashboard.HTMX))
    assert "No matching tokens" in html
    assert "<html" not in html


def test_the_agent_parameter_preselects_the_agent(token_manager: Client) -> None:
    assert open_page(token_manager, agent="bob").form["agent"].value() == "bob"
    assert '<option value="bob" selected>' in token_manager.get(TOKENS, {"agent": "bob"}).content.decode()


def test_an_empty_list_shows_an_empty_state(token_manager: Client) -> None:
    assert "No one can use the API yet." in token_manager.get(TOKENS).content.decode()


def test_the_token_page_requires_permission(viewer: Client, operator: Client, olive: auth.User) -> None:
    issue_for_ada()
    for browser in (viewer, operator):
        assert browser.get(TOKENS).status_code == 403
        assert 'href="/tokens/"' not in browser.get("/agents/").content.decode()
    olive.user_permissions.add(auth.Permission.objects.get(codename="view_apitoken"))
    page = open_page(operator)
    assert (len(page.tokens), page.form) == (1, None)
    html = operator.get(TOKENS).content.decode()
    assert '<a href="/tokens/" aria-current="page">' in html
    assert "Revoke" not in html
    assert dashboard.post(operator, ISSUE, owner="agent", agent="ada").status_code == 403
    assert len(tokens.all_tokens()) == 1


def test_issuing_a_token_without_view_permission_reveals_no_tokens(
    operator: Client, olive: auth.User
) -> None:
    olive.user_permissions.add(auth.Permission.objects.get(codename="add_apitoken"))
    issue_for_ada("Secret project")
    response = dashboard.post(operator, ISSUE, owner="agent", agent="ada")
    assert response.status_code == 403
    assert "Secret project" not in response.content.decode()


def test_query_count_does_not_grow_with_the_number_of_tokens(token_manager: Client) -> None:
    issue_for_ada()
    open_page(token_manager)
    of_one = dashboard.count_queries(lambda: open_page(token_manager))
    for _ in range(9):
        issue_for_ada()
    assert dashboard.count_queries(lambda: open_page(token_manager)) == of_one <= 9
