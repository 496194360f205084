"""Tests of the command that lists calls that wait for approval, and decides about them."""

from __future__ import annotations

import getpass
import io

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from tests.runtime.conftest import OPERATOR
from toolbelt import models
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.runtime.calls import gates
from toolbelt.runtime.calls.incoming import Call, RequestKey

pytestmark = pytest.mark.django_db
BELT = {
    "plugins": [{"name": "bank", "in_code": True}],
    "tools": [{"key": "refund", "plugin": "bank", "default_on": True}],
    "agents": [{"key": "ada"}],
    "gate_rules": [
        {
            "key": "over-500",
            "effect": "ask",
            "tools": ["refund"],
            "when": {"amount": {"exclusiveMinimum": 500}},
        }
    ],
}


def run(*args: str) -> str:
    out = io.StringIO()
    call_command("approvals", *args, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def asked(amount: int = 700) -> str:
    """Ask about a refund, and return the key of its approval."""
    gate = gates.CallGate(
        Call(key=RequestKey("ada", "s"), tool="refund", arguments={"amount": amount}), may_ask=True
    )
    snapshot, resolved, _ = gate.resolve()
    gate.admit(resolved, snapshot)
    return str(models.Approval.objects.latest("id").key)


@pytest.fixture(autouse=True)
def belt(db: None) -> None:
    belts.import_(OPERATOR, BELT, is_state=True)


def test_what_waits_is_listed() -> None:
    assert run() == "No calls wait for approval.\n"
    key = asked()
    assert run().split()[:4] == [key, "ada", "refund", "over-500"]
    assert run("list", "--agent", "bo") == "No calls wait for approval.\n"
    call_approvals.reject(OPERATOR, key)
    assert run("list", "--state", "all").split()[:5] == [key, "ada", "refund", "over-500", "rejected"]


def test_a_call_is_shown_with_what_changed_and_approved_as_it_was_shown() -> None:
    call_approvals.reject(OPERATOR, asked())
    key = asked(800)
    shown = run("show", key)
    assert "amount: 800  (the last call had 700)" in shown
    digest = shown.rpartition("Shown: ")[2].strip()
    call_approvals.edit(OPERATOR, key, {"amount": 600}, digest)
    with pytest.raises(CommandError):
        run("approve", key, "--shown", digest)
    assert "amount: 600  (edited by an operator, called with 800; the last call had 700)" in run("show", key)
    assert run("approve", key.lower()).startswith(f'Approved {key}: ada calls refund with {{"amount": 600}}.')
    assert call_approvals.find(key).state == "approved"
    entry = models.AuditEntry.objects.latest("id")
    assert (entry.action, entry.via) == ("approval.approve", "command")


def test_one_of_two_people_is_told_that_another_has_to_approve_it() -> None:
    entries.change(OPERATOR, "gate_rule", "over-500", {"approvals": 2})
    key = asked()
    assert run("approve", key).endswith("1 approval of other people to go.\n")
    with pytest.raises(CommandError):
        run("approve", key)


def test_a_call_is_rejected_with_a_note_for_the_model() -> None:
    key = asked()
    run("reject", key, "--note", "No ticket.", "--reason", "Fraud?")
    assert (call_approvals.find(key).note, models.AuditEntry.objects.latest("id").reason) == (
        "No ticket.",
        "Fraud?",
    )
    with pytest.raises(CommandError):
        run("reject", key)
    with pytest.raises(CommandError):
        run("show", "NOSUCH")


def test_a_call_is_approved_for_days_listed_and_revoked() -> None:
    key = asked()
    # Whoever is logged in at the terminal, but has no account.
    with pytest.raises(CommandError, match="approve it once"):
        run("approve", key, "--days", "7")
    get_user_model().objects.create_superuser(getpass.getuser())
    assert f"approvals revoke {key} ends that" in run("approve", key, "--days", "7")
    assert run("list", "--always").split()[:3] == [key, "ada", "refund"]
    asked()
    assert models.Approval.objects.latest("id").state == "approved"
    assert "1 call on 1 day" in run("people")
    assert run("revoke", key).startswith(f"Revoked {key}")
    assert run("list", "--always") == "No approval holds for further calls.\n"
    with pytest.raises(CommandError, match="nothing to revoke"):
        run("revoke", key)
    with pytest.raises(CommandError, match="30 days at most"):
        run("approve", asked(800), "--days", "31")
