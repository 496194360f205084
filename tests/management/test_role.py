"""Tests that `manage.py role` lists and sets the operators of an agent."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def kiosk(django_user_model: Any) -> None:
    factories.agent("kiosk")
    for name in ("anna", "ben"):
        django_user_model.objects.create_user(name)


def operate(*words: str) -> str:
    printed = io.StringIO()
    call_command("role", "operate", "kiosk", *words, stdout=printed)
    return printed.getvalue()


def test_without_users_the_operators_of_an_agent_are_printed_and_kept() -> None:
    assert operate() == "Operators of kiosk: none.\n"
    assert operate("anna", "ben") == "Operators of kiosk: anna, ben.\n"
    assert operate() == "Operators of kiosk: anna, ben.\n"


def test_all_operators_of_an_agent_are_only_removed_on_request() -> None:
    operate("anna")
    assert operate("--none") == "Operators of kiosk: none.\n"
    with pytest.raises(CommandError, match="--none removes all operators: leave out anna, or --none"):
        operate("anna", "--none")


def test_operators_of_an_unknown_agent_are_not_printed() -> None:
    with pytest.raises(CommandError, match=r"no agent named 'kisok'\. Did you mean kiosk"):
        call_command("role", "operate", "kisok")
