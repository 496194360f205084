"""Tests that users are created, get new passwords and lose second factors on the command line."""

from __future__ import annotations

import getpass
import io
import sys
from typing import Any

import pytest
from django.contrib import auth
from django.core.management import CommandError, call_command

from tests.web import second_factors as helpers
from toolbelt.control.people import roles, second_factors
from toolbelt.control.reports import queries

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough password"


def run(*args: str, typed: str = "") -> str:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(typed))
        call_command("user", *args, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def logs_in(name: str, password: str) -> bool:
    user = auth.get_user_model()._default_manager.get(username=name)
    return user.check_password(password)


def test_a_user_is_created_with_the_password_of_standard_input_and_roles() -> None:
    assert run("create", "anna", "--role", "operator", typed=f"{PASSWORD}\n") == ""
    assert logs_in("anna", PASSWORD)
    assert roles.of_user("anna") == ("operator",)
    run("create", "ben", typed=PASSWORD)
    assert roles.of_user("ben") == ("viewer",)
    run("create", "cleo", "--role", "none", typed=PASSWORD)
    assert roles.of_user("cleo") == ()


def test_a_generated_password_is_printed_alone() -> None:
    password = run("create", "anna", "--generate").removesuffix("\n")
    assert len(password) >= 16
    assert logs_in("anna", password)
    another = run("password", "anna", "--generate").removesuffix("\n")
    assert another != password
    assert logs_in("anna", another)


def test_a_new_password_is_logged_without_the_password() -> None:
    run("create", "anna", typed=PASSWORD)
    run("password", "anna", "--reason", "Forgotten.", typed="another long password\n")
    entry = queries.changes(size=1).entries[0]
    assert (entry.action, entry.subject_key, entry.reason) == ("user.password", "anna", "Forgotten.")
    assert (entry.before, entry.after) == (None, None)
    assert logs_in("anna", "another long password")


@pytest.mark.parametrize(
    ("words", "typed", "message"),
    [
        (["create", "anna"], "short\n", "password: This password is too short"),
        (["create", "anna"], "", "password: This password is too short"),
        (["create", "an na!"], f"{PASSWORD}\n", "name: Enter a valid username"),
        (["password", "nobody"], f"{PASSWORD}\n", "no user named 'nobody'"),
    ],
)
def test_bad_input_is_refused_and_nobody_is_created(words: list[str], typed: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*words, typed=typed)
    assert not auth.get_user_model()._default_manager.exists()


def test_a_person_types_the_password_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    typed: Any = iter([PASSWORD, "something else", PASSWORD, PASSWORD])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda prompt: next(typed))
    with pytest.raises(CommandError, match=r"do not match\. Nothing was changed"):
        call_command("user", "create", "anna")
    call_command("user", "create", "anna", stderr=io.StringIO())
    assert logs_in("anna", PASSWORD)


def test_a_lost_second_factor_is_reset() -> None:
    run("create", "anna", typed=PASSWORD)
    anna = auth.get_user_model()._default_manager.get(username="anna")
    helpers.set_up(anna)
    run("reset-second-factor", "anna", "--reason", "Lost her phone.")
    assert not second_factors.are_asked(anna.pk)
    entry = queries.changes(size=1).entries[0]
    assert (entry.action, entry.subject_key, entry.reason) == ("user.factor_reset", "anna", "Lost her phone.")
    run("reset-second-factor", "anna")
    assert queries.changes(size=1).entries[0] == entry
    with pytest.raises(CommandError, match="no user named 'ben'"):
        run("reset-second-factor", "ben")
