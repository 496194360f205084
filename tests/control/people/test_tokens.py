"""Tokens are issued and revoked."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth import models as logins
from django.core import serializers
from django.utils import timezone

from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.people import rights, tokens
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import credentials

COMMAND = writing.by("root", via="command")


def test_a_token_of_an_agent_is_recognised(stored, operator):
    issued = tokens.issue(operator, name="The chat", agent="ada")
    bearer = credentials.recognize(issued.text)
    assert bearer == credentials.Bearer(
        kind="agent", name="agent:ada", prefix=issued.token.prefix, agent="ada", scope=""
    )


def test_a_token_of_an_operator_is_recognised(stored):
    user = logins.User.objects.create_user("olive")
    issued = tokens.issue(COMMAND, user="olive", scope="write")
    bearer = credentials.recognize(issued.text)
    assert bearer == credentials.Bearer(
        kind="operator", name="olive", prefix=issued.token.prefix, scope="write", user=user.pk
    )


def test_the_text_is_given_once_and_kept_nowhere(stored, operator):
    issued = tokens.issue(operator.replace(reason="for the chat"), agent="ada")
    secret = issued.text[len(issued.token.prefix) :]
    assert secret not in repr(issued)
    for rows in (models.ApiToken.objects.all(), models.AuditEntry.objects.all()):
        assert secret not in serializers.serialize("json", rows)
    digest = models.ApiToken.objects.get().digest
    assert digest not in serializers.serialize("json", models.AuditEntry.objects.all())


def test_issuing_and_revoking_are_audited(stored, operator):
    end = timezone.now() + dt.timedelta(days=1)
    issued = tokens.issue(operator.replace(reason="why not"), name="The chat", agent="ada", expires=end)
    tokens.revoke(operator.replace(reason="left behind"), issued.token.prefix)
    revoked, made = queries.changes(size=2).entries
    told = {"name": "The chat", "agent": "ada", "expires": end.isoformat(timespec="seconds")}
    assert (made.action, made.subject_key, made.after, made.reason) == (
        "token.issue",
        issued.token.prefix,
        told,
        "why not",
    )
    assert (revoked.action, revoked.before, revoked.after, revoked.reason) == (
        "token.revoke",
        told,
        None,
        "left behind",
    )


def test_a_revoked_token_opens_nothing_and_stays_so(stored, operator):
    issued = tokens.issue(operator, agent="ada")
    gone = tokens.revoke(operator, issued.token.prefix)
    assert gone.revoked is not None
    assert credentials.recognize(issued.text) is None
    assert tokens.revoke(operator, issued.token.prefix).revoked == gone.revoked
    assert queries.changes(action="token.revoke").total == 1
    assert [one.revoked for one in tokens.all_tokens()] == [gone.revoked]


def test_whoever_fears_for_a_token_may_give_all_of_it(stored, operator):
    issued = tokens.issue(operator, agent="ada")
    assert tokens.revoke(operator, issued.text).revoked is not None
    assert credentials.recognize(issued.text) is None


def test_a_token_that_is_over_opens_nothing(stored, operator):
    issued = tokens.issue(operator, agent="ada", expires=timezone.now() + dt.timedelta(days=1))
    assert credentials.recognize(issued.text) is not None
    models.ApiToken.objects.update(expires=timezone.now() - dt.timedelta(seconds=1))
    assert credentials.recognize(issued.text) is None


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({}, "agent"),
        ({"agent": "ada", "user": "olive", "scope": "read"}, "agent"),
        ({"agent": "ada", "scope": "read"}, "scope"),
        ({"user": "olive"}, "scope"),
        ({"user": "olive", "scope": "admin"}, "scope"),
        ({"agent": "ada", "name": "x" * 101}, "name"),
        ({"agent": "ada", "name": "a\nb"}, "name"),
        ({"agent": "ada", "expires": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}, "expires"),
        ({"agent": "ada", "expires": dt.datetime(2920, 1, 1)}, "expires"),  # noqa: DTZ001 (it is the point)
    ],
)
def test_what_makes_no_sense_together_is_refused(stored, asked: dict[str, Any], path):
    with pytest.raises(errors.Invalid) as raised:
        tokens.issue(COMMAND, **asked)
    assert [problem.path for problem in raised.value.problems] == [path]
    assert not models.ApiToken.objects.exists()


def test_whose_token_it_is_has_to_be_known(stored):
    with pytest.raises(errors.NotFound, match="Did you mean ada"):
        tokens.issue(COMMAND, agent="adda")
    with pytest.raises(errors.NotFound, match="operator"):
        tokens.issue(COMMAND, user="olive", scope="read")
    with pytest.raises(errors.NotFound):
        tokens.revoke(COMMAND, "tb_00000000")
    with pytest.raises(errors.NotFound):
        tokens.revoke(COMMAND, "tb_\0")


def test_no_operator_issues_a_token_in_anothers_name(stored, operator):
    for name in ("olive", "root"):
        logins.User.objects.create_user(name)
    assert tokens.issue(operator, user="olive", scope="write").token.user == "olive"
    with pytest.raises(errors.Refused, match="issued by that operator"):
        tokens.issue(operator, user="root", scope="read")


def test_tokens_go_with_their_agent(stored, operator):
    issued = tokens.issue(operator, agent="ada")
    models.Agent.objects.get(key="ada").delete()
    assert credentials.recognize(issued.text) is None


def test_neither_is_taken_back(stored, operator):
    issued = tokens.issue(operator, agent="ada")
    tokens.revoke(operator, issued.token.prefix)
    for entry in queries.changes(size=2).entries:
        with pytest.raises(errors.Refused, match="cannot be undone"):
            undo.undo(operator, entry.id)
        assert rights.permissions_to_undo(entry) == ["toolbelt.change_apitoken"]
