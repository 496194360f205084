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

from tests.web import acting
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import tokens
from toolbelt.runtime import credentials
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

TOKENS = "/tokens/"
ISSUE = "/tokens/issue/"


def look(browser: Client, **said: Any) -> Any:
    return browser.get(TOKENS, said).context["page"]


@pytest.fixture
def keeper(operator: Client, olive: auth.User) -> Client:
    """Return the browser of a user who may issue and revoke tokens."""
    names = ["view_apitoken", "add_apitoken", "change_apitoken"]
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=names))
    return operator


def of_ada(name: str = "", days: float | None = None) -> tokens.Issued:
    expires = timezone.now() + dt.timedelta(days=days) if days else None
    return tokens.issue(OPERATOR, agent="ada", name=name, expires=expires)


def test_each_token_shows_its_owner_and_state(keeper: Client) -> None:
    of_ada("Nightly build", days=30)
    soon = of_ada(days=2)
    tokens.issue(writing.by("olive", via="screen"), user="olive", scope="write", name="Mine")
    over = of_ada("Old")
    models.ApiToken.objects.filter(prefix=over.token.prefix).update(
        expires=timezone.now() - dt.timedelta(days=1), last_used=timezone.now() - dt.timedelta(hours=3)
    )
    tokens.revoke(OPERATOR, of_ada("Lost").token.prefix)
    page = look(keeper)
    told = {
        (line.token.agent, line.token.user, line.scope, line.token.name, line.state) for line in page.tokens
    }
    assert told == {
        ("", "olive", "Read and write", "Mine", "valid"),
        ("ada", "", "", "", "expires soon"),
        ("ada", "", "", "Nightly build", "valid"),
    }
    assert {(line.token.name, line.state) for line in page.gone} == {("Lost", "revoked"), ("Old", "expired")}
    assert page.matches == "3 valid of 5"
    html = keeper.get(TOKENS).content.decode()
    assert re.findall(r"expires <time[^>]*>([^<]+)", html) == ["in 2 d", "in 30 d"]
    assert re.findall(r"used <time[^>]*>([^<]+)", html) == ["3 h ago"]
    assert len(re.findall(r"expired <time", html)) == 2
    assert soon.text not in html


@pytest.mark.parametrize("htmx", [True, False])
def test_a_new_token_is_shown_once_and_never_stored(keeper: Client, htmx: bool) -> None:
    fields = {"owner": "agent", "agent": "ada", "name": "Chat", "days": "30"}
    answer = acting.post(keeper, ISSUE, htmx=htmx, **fields)
    assert answer.status_code == 200
    issued = answer.context["page"].issued
    assert issued.text in answer.content.decode()
    assert answer.headers["Cache-Control"] == "private, no-store"
    bearer = credentials.recognize(issued.text)
    assert bearer is not None
    assert bearer.agent == "ada"
    (token,) = tokens.all_tokens()
    assert token.name == "Chat"
    assert token.expires is not None
    assert round((token.expires - timezone.now()).total_seconds() / 86400) == 30
    assert issued.text not in keeper.get(TOKENS).content.decode()
    assert not any(issued.text in str(session.get_decoded()) for session in Session.objects.all())
    assert issued.text not in str(acting.newest().after)
    assert acting.newest().actor == "olive"
    if htmx:
        assert "<html" not in answer.content.decode()


def test_a_personal_token_belongs_to_its_creator(keeper: Client) -> None:
    acting.post(keeper, ISSUE, owner="me", agent="ada", scope="write", days="")
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
    keeper: Client, fields: dict[str, str], field: str, htmx: bool
) -> None:
    answer = acting.post(keeper, ISSUE, htmx=htmx, **fields)
    assert answer.status_code == 422
    form = answer.context["page"].form
    assert list(form.errors) == [field]
    assert form["name"].value() == fields.get("name")
    assert tokens.all_tokens() == []


@pytest.mark.parametrize("htmx", [True, False])
def test_revoking_a_token_requires_confirmation(keeper: Client, htmx: bool) -> None:
    issued = of_ada()
    answer = acting.post(keeper, f"/tokens/{issued.token.prefix}/revoke/", htmx=htmx)
    question = answer.context["confirmation"]
    assert question.title == f"Revoke token {issued.token.prefix}?"
    assert credentials.recognize(issued.text) is not None


@pytest.mark.parametrize("htmx", [True, False])
def test_a_revoked_token_is_rejected(keeper: Client, htmx: bool) -> None:
    issued, other = of_ada(), of_ada()
    address = f"/tokens/{issued.token.prefix}/revoke/"
    answer = acting.post(keeper, address, htmx=htmx, confirm="yes", reason="It leaked.")
    assert credentials.recognize(issued.text) is None
    assert credentials.recognize(other.text) is not None
    entry = acting.newest()
    assert (entry.action, entry.reason, entry.via) == ("token.revoke", "It leaked.", "screen")
    if not htmx:
        assert (answer.status_code, answer.headers["Location"]) == (303, TOKENS)
    page = answer.context["page"] if htmx else look(keeper)
    assert page.notice.text == f"Token {issued.token.prefix} of agent ada revoked."
    assert [line.token.prefix for line in page.gone] == [issued.token.prefix]


def test_revoking_an_unknown_token_is_not_found(keeper: Client) -> None:
    assert acting.post(keeper, "/tokens/tb_nothing/revoke/", confirm="yes").status_code == 404


def test_tokens_are_searched_by_name_owner_and_prefix(keeper: Client) -> None:
    issued = of_ada("Nightly build")
    tokens.issue(OPERATOR, agent="bob", name="Chat")
    for query in ("NIGHTLY", "ada", issued.token.prefix[:8]):
        assert [line.token.name for line in look(keeper, q=query).tokens] == ["Nightly build"]
    html = acting.text(keeper.get(TOKENS, {"q": "nothing"}, headers=acting.HTMX))
    assert "No matching tokens" in html
    assert "<html" not in html


def test_the_agent_parameter_preselects_the_agent(keeper: Client) -> None:
    assert look(keeper, agent="bob").form["agent"].value() == "bob"
    assert '<option value="bob" selected>' in keeper.get(TOKENS, {"agent": "bob"}).content.decode()


def test_an_empty_list_shows_an_empty_state(keeper: Client) -> None:
    assert "No one can use the API yet." in keeper.get(TOKENS).content.decode()


def test_the_token_page_requires_permission(viewer: Client, operator: Client, olive: auth.User) -> None:
    of_ada()
    for browser in (viewer, operator):
        assert browser.get(TOKENS).status_code == 403
        assert 'href="/tokens/"' not in browser.get("/agents/").content.decode()
    olive.user_permissions.add(auth.Permission.objects.get(codename="view_apitoken"))
    page = look(operator)
    assert (len(page.tokens), page.form) == (1, None)
    html = operator.get(TOKENS).content.decode()
    assert '<a href="/tokens/" aria-current="page">' in html
    assert "Revoke" not in html
    assert acting.post(operator, ISSUE, owner="agent", agent="ada").status_code == 403
    assert len(tokens.all_tokens()) == 1


def test_issuing_a_token_without_view_permission_reveals_no_tokens(
    operator: Client, olive: auth.User
) -> None:
    olive.user_permissions.add(auth.Permission.objects.get(codename="add_apitoken"))
    of_ada("Secret project")
    answer = acting.post(operator, ISSUE, owner="agent", agent="ada")
    assert answer.status_code == 403
    assert "Secret project" not in answer.content.decode()


def test_query_count_does_not_grow_with_the_number_of_tokens(keeper: Client) -> None:
    of_ada()
    look(keeper)
    of_one = acting.queries(lambda: look(keeper))
    for _ in range(9):
        of_ada()
    assert acting.queries(lambda: look(keeper)) == of_one <= 9
