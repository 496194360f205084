"""Who gets in, operation by operation: the whole OpenAPI document is walked, so that no operation can be forgotten."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import models as logins
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.api.conftest import SETUP, Asking, of_operator
from toolbelt import models
from toolbelt.api import application
from toolbelt.control.people import tokens
from toolbelt.core import api_tokens

DOCUMENT = application.api.get_openapi_schema(path_prefix="")
OPERATIONS = [
    (method, path, described["operationId"])
    for method, path, described in application.described_operations(DOCUMENT)
]
READING = ("GET", "HEAD")
WRITES = [one for one in OPERATIONS if one[0] not in READING and not one[1].endswith("/surface")]
# What an agent's own token may do. An addition gives agents a permission: document it in the how-to, too.
AGENTS_OWN = {
    "get_surface",
    "ask_for_surface",
    "read_declared_tools",
    "declare_tools",
    "call_tool",
    "admit_calls",
    "report_outcome",
    "record_calls",
    "list_agent_toolkits",
    "list_agent_sessions",
    "get_session",
    "equip_session",
    "evict_session",
}


def address(path: str, agent: str = "ada") -> str:
    """Fill an operation's address in: with an agent, and with names that are there."""
    names = {
        "agent": agent,
        "tool": "clock",
        "toolkit": "reading",
        "session": "s1",
        "loadout": "night",
        "plugin": "kb",
        "change": str(models.AuditEntry.objects.values_list("pk", flat=True).first()),
    }
    return re.sub(r"{(\w+)}", lambda found: names.get(found[1], "1"), path)


def configured() -> list[Any]:
    """Return all rows but those that agents write: sessions and calls."""
    kept = (models.AgentSession, models.CallRecord)
    every = [model for model in apps.get_app_config("toolbelt").get_models() if model not in kept]
    return [list(model._default_manager.order_by("pk").values()) for model in every]


def test_nobody_gets_in_without_a_token(nobody, stored, subtests):
    for method, path, name in OPERATIONS:
        with subtests.test(name):
            answer = nobody.send(method, address(path), {})
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json()["code"] == "unauthenticated"


def test_a_login_opens_nothing(stored, subtests):
    browser = Client()
    browser.force_login(logins.User.objects.create_superuser("olga"))
    for method, path, name in OPERATIONS:
        with subtests.test(name):
            answer = browser.generic(method, f"/api/v1{address(path)}", b"{}", "application/json")
            assert answer.status_code == 401


def test_another_agents_token_opens_nothing(bob, subtests):
    for method, path, name in OPERATIONS:
        with subtests.test(name):
            answer = bob.send(method, address(path), {})
            assert answer.status_code == (404 if name in AGENTS_OWN else 403)
            unknown = bob.send(method, address(path, "nobody"), {})
            assert unknown.status_code == answer.status_code
            assert unknown.content == answer.content.replace(b"'ada'", b"'nobody'")


def test_an_agents_own_token_writes_nothing_but_its_sessions(ada, subtests):
    before = configured()
    for method, path, name in OPERATIONS:
        with subtests.test(name):
            answer = ada.send(method, address(path), {})
            if name in AGENTS_OWN:
                assert answer.status_code not in (401, 403)
            else:
                assert answer.status_code == 403
            assert configured() == before


def test_what_agents_may_do_is_there():
    assert {name for _, _, name in OPERATIONS} >= AGENTS_OWN


def test_a_token_that_may_read_writes_nothing(reader, subtests):
    for method, path, name in WRITES:
        with subtests.test(name):
            answer = reader.send(method, address(path), {})
            assert answer.status_code == 403
            assert "is read-only" in answer.json()["detail"]


def test_an_operator_without_permissions_writes_nothing(stored, subtests):
    asking = Asking(of_operator("sam"))
    before = configured()
    for method, path, name in WRITES:
        with subtests.test(name):
            answer = asking.send(method, address(path), {})
            # What it takes may depend on what is sent, and nothing was: it is unsound, or changes nothing.
            assert answer.status_code in ((403, 422) if path != "/belt" else (200,))
            assert configured() == before


def test_no_two_operations_are_called_the_same():
    names = [name for _, _, name in OPERATIONS]
    assert sorted(set(names)) == sorted(names)


@pytest.fixture
def text(stored: None) -> str:
    return tokens.issue(SETUP, agent="ada").text


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda text: "",
        lambda text: "tb_",
        lambda text: text[:-1],
        lambda text: text[:-1] + ("a" if text[-1] != "a" else "b"),
        lambda text: text.lower(),
        lambda text: api_tokens.make(lambda letters: letters[7]),
        lambda text: "tb_" + "é" * 57,
    ],
)
def test_what_is_no_token_is_told_nothing_else(text, spoiled):
    known = Asking(text).get("/agents/ada/surface")
    assert known.status_code == 200
    answer = Asking(spoiled(text)).get("/agents/ada/surface")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_over_revoked_and_inactive_read_alike(text):
    said = set()
    kept = models.ApiToken.objects.get()
    for change in (
        {"expires": timezone.now() - dt.timedelta(seconds=1)},
        {"revoked": timezone.now()},
        {"digest": "0" * 64},
    ):
        models.ApiToken.objects.filter(pk=kept.pk).update(
            **{"expires": None, "revoked": None, "digest": kept.digest} | change
        )
        answer = Asking(text).get("/agents/ada/surface")
        said.add((answer.status_code, answer.content, answer.headers["WWW-Authenticate"]))
    sams = of_operator("sam")
    logins.User.objects.filter(username="sam").update(is_active=False)
    answer = Asking(sams).get("/agents/ada/surface")
    said.add((answer.status_code, answer.content, answer.headers["WWW-Authenticate"]))
    unknown = Asking(api_tokens.make(lambda letters: letters[3])).get("/agents/ada/surface")
    said.add((unknown.status_code, unknown.content, unknown.headers["WWW-Authenticate"]))
    assert len(said) == 1
    assert 'error="invalid_token"' in unknown.headers["WWW-Authenticate"]


def test_the_scheme_is_read_in_any_case(text):
    client = Client(headers={"Authorization": f"bearer  {text}"})
    assert client.get("/api/v1/agents/ada/surface").status_code == 200
    client = Client(headers={"Authorization": f"Basic {text}"})
    assert client.get("/api/v1/agents/ada/surface").status_code == 401


def test_an_operator_acts_with_the_permissions_of_the_moment(stored):
    asking = Asking(of_operator("sam", "change_agent"))
    call = {"tool": "clock"}
    assert asking.post("/agents/ada/calls", call).status_code == 200
    logins.User.objects.get(username="sam").user_permissions.clear()
    answer = asking.post("/agents/ada/calls", call)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "toolbelt.change_agent" in answer.json()["detail"]


def test_no_answer_may_be_kept_by_others(ada):
    for path in ("/agents/ada/toolkits", "/agents/ada/surface", "/nowhere"):
        assert "private" in ada.get(path).headers["Cache-Control"]


def test_tokens_move_no_revision(stored):
    def revision() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT number, catalog_stamp FROM toolbelt_revision")
            return cursor.fetchall()

    before = revision()
    issued = tokens.issue(SETUP, agent="ada")
    tokens.revoke(SETUP, issued.token.prefix)
    assert revision() == before
