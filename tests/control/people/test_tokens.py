"""Tests of issuing, recognizing and revoking tokens."""

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


def test_an_agents_token_is_recognized(stored, operator):
    issued = tokens.issue(operator, name="The chat", agent="ada")
    bearer = credentials.recognize(issued.text)
    assert bearer == credentials.Bearer(
        kind="agent", name="agent:ada", prefix=issued.token.prefix, agent="ada", scope=""
    )


def test_an_operators_token_is_recognized(stored):
    user = logins.User.objects.create_user("olive")
    issued = tokens.issue(COMMAND, user="olive", scope="write")
    bearer = credentials.recognize(issued.text)
    assert bearer == credentials.Bearer(
        kind="operator", name="olive", prefix=issued.token.prefix, scope="write", user=user.pk
    )


def test_the_text_of_a_token_is_never_stored(stored, operator):
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
    revoke_entry, issue_entry = queries.changes(size=2).entries
    values = {"name": "The chat", "agent": "ada", "expires": end.isoformat(timespec="seconds")}
    assert (issue_entry.action, issue_entry.subject_key, issue_entry.after, issue_entry.reason) == (
        "token.issue",
        issued.token.prefix,
        values,
        "why not",
    )
    assert (revoke_entry.action, revoke_entry.before, revoke_entry.after, revoke_entry.reason) == (
        "token.revoke",
        values,
        None,
        "left behind",
    )


def test_a_revoked_token_is_rejected_and_stays_revoked(stored, operator):
    issued = tokens.issue(operator, agent="ada")
    revoked = tokens.revoke(operator, issued.token.prefix)
    assert revoked.revoked is not None
    assert credentials.recognize(issued.text) is None
    assert tokens.revoke(operator, issued.token.prefix).revoked == revoked.revoked
    assert queries.changes(action="token.revoke").total == 1
    assert [token.revoked for token in tokens.all_tokens()] == [revoked.revoked]


def test_a_token_can_be_revoked_by_its_full_text(stored, operator):
    issued = tokens.issue(operator, agent="ada")
    assert tokens.revoke(operator, issued.text).revoked is not None
    assert credentials.recognize(issued.text) is None


def test_an_expired_token_is_rejected(stored, operator):
    issued = tokens.issue(operator, agent="ada", expires=timezone.now() + dt.timedelta(days=1))
    assert credentials.recognize(issued.text) is not None
    models.ApiToken.objects.update(expires=timezone.now() - dt.timedelta(seconds=1))
    assert credentials.recognize(issued.text) is None


@pytest.mark.parametrize(
    ("parameters", "path"),
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
def test_invalid_token_parameters_are_refused(stored, parameters: dict[str, Any], path):
    with pytest.raises(errors.Invalid) as raised:
        tokens.issue(COMMAND, **parameters)
    assert [problem.path for problem in raised.value.problems] == [path]
    assert not models.ApiToken.objects.exists()


def test_tokens_of_unknown_owners_and_unknown_tokens_are_not_found(stored):
    with pytest.raises(errors.NotFound, match="Did you mean ada"):
        tokens.issue(COMMAND, agent="adda")
    with pytest.raises(errors.NotFound, match="operator"):
        tokens.issue(COMMAND, user="olive", scope="read")
    with pytest.raises(errors.NotFound):
        tokens.revoke(COMMAND, "tb_00000000")
    with pytest.raises(errors.NotFound):
        tokens.revoke(COMMAND, "tb_\0")


def test_an_operator_cannot_issue_a_token_for_another_operator(stored, operator):
    for name in ("olive", "root"):
        logins.User.objects.create_user(name)
    assert tokens.issue(operator, user="olive", scope="write").token.user == "olive"
    with pytest.raises(errors.Refused, match="issued by that operator"):
        tokens.issue(operator, user="root", scope="read")


def test_removing_an_agent_removes_its_tokens(stored, operator):
    issued = tokens.issue(operator, agent="ada")
    models.Agent.objects.get(key="ada").delete()
    assert credentials.recognize(issued.text) is None


def test_issuing_and_revoking_cannot_be_undone(stored, operator):
    issued = tokens.issue(operator, agent="ada")
    tokens.revoke(operator, issued.token.prefix)
    for entry in queries.changes(size=2).entries:
        with pytest.raises(errors.Refused, match="cannot be undone"):
            undo.undo(operator, entry.id)
        assert rights.permissions_to_undo(entry) == ["toolbelt.change_apitoken"]
