"""Tests of the output and effects of the commands for tokens and sessions."""

from __future__ import annotations

import datetime as dt
import getpass
import io
from typing import Any

import pytest
from django.contrib.auth import models as logins
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests import factories
from toolbelt import models
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import credentials
from toolbelt.runtime.calls import own_tools


def run(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("token", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def agent(db: None) -> models.Agent:
    return factories.agent("ada")


def test_only_the_token_is_printed_to_stdout(agent):
    printed, notes = run("issue", "--agent", "ada", "--name", "The chat")
    bearer = credentials.recognize(printed.rstrip("\n"))
    assert bearer is not None
    assert bearer.agent == "ada"
    assert "agent ada" in notes
    assert printed.strip() not in notes


def test_an_operators_token_has_a_scope_and_can_expire(agent):
    logins.User.objects.create_user("olive")
    printed, _ = run("issue", "--operator", "olive", "--scope", "read", "--days", "7")
    bearer = credentials.recognize(printed.strip())
    assert bearer is not None
    assert (bearer.name, bearer.scope) == ("olive", "read")
    row = models.ApiToken.objects.get()
    assert row.expires is not None
    assert dt.timedelta(days=6) < row.expires - timezone.now() <= dt.timedelta(days=7)


def test_a_token_for_an_archived_agent_is_issued_with_a_warning(agent):
    assert "archived" not in run("issue", "--agent", "ada")[1]
    models.Agent.objects.update(archived=True)
    printed, notes = run("issue", "--agent", "ada")
    assert printed.startswith("tb_")
    assert "ada is archived and answers no requests: bring it back first" in notes


def test_tokens_are_listed_and_revoked_by_their_prefix(agent):
    assert "There are no tokens" in run("list")[0]
    text = run("issue", "--agent", "ada", "--name", "The chat")[0].strip()
    listed = run("list")[0]
    issued = f"issued by {getpass.getuser()} {timezone.localdate():%Y-%m-%d}"
    assert " ".join(listed.split()) == f"{text[:11]} valid agent ada {issued} not used yet The chat"
    assert text not in listed
    assert (
        run("revoke", text[:11], "--reason", "lost")[0]
        == f"{text[:11]} is revoked. Requests with it will be rejected.\n"
    )
    assert credentials.recognize(text) is None
    assert "revoked" in run("list")[0]
    assert models.AuditEntry.objects.filter(action="token.revoke", via="command", reason="lost").exists()


def test_tokens_of_a_deactivated_user_are_listed_as_not_valid(agent):
    user = logins.User.objects.create(username="olive")
    run("issue", "--operator", "olive", "--scope", "read", "--days", "30")
    assert "valid until" in run("list")[0]
    user.is_active = False
    user.save()
    assert "not valid: user deactivated" in run("list")[0]
    run("issue", "--agent", "ada")
    models.Agent.objects.update(archived=True)
    assert "not valid: agent archived" in run("list")[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["issue", "--agent", "adda"], "Did you mean ada"),
        (["issue", "--operator", "olive", "--scope", "read"], "To create a user, use People & roles"),
        (["issue", "--agent", "ada", "--scope", "read"], "an agent's token has no scope"),
        (["issue", "--agent", "ada", "--days", "0"], "choose a time in the future"),
        (["issue", "--agent", "ada", "--days", "99999999999"], "too large"),
        (["revoke", "tb_nothing"], "no token named"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(agent, arguments: list[str], message):
    with pytest.raises(CommandError, match=message):
        run(*arguments)
    assert not models.ApiToken.objects.exists()


def test_sessions_are_pruned_by_days(agent):
    agent.allowed_toolkits.create(toolkit=factories.toolkit("dev", factories.tool("run")))
    own_tools.call(RequestKey("ada", "s1"), "load_tools", {"toolkit": "dev"})
    models.AgentSession.objects.update(changed=timezone.now() - dt.timedelta(days=9))

    def prune(days: Any) -> str:
        out = io.StringIO()
        call_command("prune_sessions", "--days", days, stdout=out)
        return out.getvalue()

    assert prune("10") == "Deleted 0 sessions.\n"
    assert prune("8") == "Deleted 1 session.\n"
    for days in ("-1", "99999999999"):
        with pytest.raises(CommandError):
            prune(days)
