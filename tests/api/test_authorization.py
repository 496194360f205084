"""Tests of authorization for every operation in the OpenAPI document, so that none can be forgotten."""

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
from toolbelt.control import drafts
from toolbelt.control.access import switches
from toolbelt.control.people import tokens
from toolbelt.core import api_tokens

DOCUMENT = application.api.get_openapi_schema(path_prefix="")
OPERATIONS = [
    (method, path, described["operationId"])
    for method, path, described in application.described_operations(DOCUMENT)
]
READ_METHODS = ("GET", "HEAD")
WRITES = [
    operation
    for operation in OPERATIONS
    if operation[0] not in READ_METHODS and not operation[1].endswith("/surface")
]
# The operations that an agent's own token may use. Document any addition in the how-to guide, too.
AGENTS_OWN = {
    "get_surface",
    "ask_for_surface",
    "read_declared_tools",
    "declare_tools",
    "call_tool",
    "check_call",
    "admit_calls",
    "report_outcome",
    "record_calls",
    "get_approval",
    "list_agent_toolkits",
    "list_agent_sessions",
    "get_session",
    "equip_session",
    "evict_session",
}


def address(path: str, agent: str = "ada") -> str:
    """Return the address of an operation for an agent, with names that exist."""
    names = {
        "agent": agent,
        "tool": "clock",
        "toolkit": "reading",
        "session": "s1",
        "loadout": "night",
        "plugin": "kb",
        "change": str(models.AuditEntry.objects.values_list("pk", flat=True).first()),
        "draft": str(models.Draft.objects.values_list("pk", flat=True).first()),
    }
    return re.sub(r"{(\w+)}", lambda match: names.get(match[1], "1"), path)


def stored_configuration() -> list[Any]:
    """Return all rows except those that agents write: sessions and calls."""
    written_by_agents = (models.AgentSession, models.CallRecord)
    configuration = [
        model for model in apps.get_app_config("toolbelt").get_models() if model not in written_by_agents
    ]
    return [list(model._default_manager.order_by("pk").values()) for model in configuration]


def test_requests_without_a_token_are_rejected(anonymous, stored, subtests):
    for method, path, name in OPERATIONS:
        with subtests.test(name):
            answer = anonymous.send(method, address(path), {})
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json()["code"] == "unauthenticated"


def test_a_browser_session_does_not_authenticate_api_requests(stored, subtests):
    browser = Client()
    browser.force_login(logins.User.objects.create_superuser("olga"))
    for method, path, name in OPERATIONS:
        with subtests.test(name):
            answer = browser.generic(method, f"/api/v1{address(path)}", b"{}", "application/json")
            assert answer.status_code == 401


def test_another_agents_token_is_refused_without_revealing_the_agent(bob, subtests):
    for method, path, name in OPERATIONS:
        with subtests.test(name):
            answer = bob.send(method, address(path), {})
            assert answer.status_code == (404 if name in AGENTS_OWN else 403)
            unknown = bob.send(method, address(path, "nobody"), {})
            assert unknown.status_code == answer.status_code
            assert unknown.content == answer.content.replace(b"'ada'", b"'nobody'")
            if name in AGENTS_OWN - {"read_declared_tools", "declare_tools"}:
                assert "or this token belongs to another agent." in answer.json()["detail"]


def test_an_agents_token_can_only_write_its_own_sessions_and_calls(ada, subtests):
    before = stored_configuration()
    for method, path, name in OPERATIONS:
        with subtests.test(name):
            answer = ada.send(method, address(path), {})
            if name in AGENTS_OWN:
                assert answer.status_code not in (401, 403)
            else:
                assert answer.status_code == 403
            assert stored_configuration() == before


def test_every_operation_allowed_to_agents_exists():
    assert {name for _, _, name in OPERATIONS} >= AGENTS_OWN


def test_a_read_only_token_cannot_write(reader, subtests):
    for method, path, name in WRITES:
        with subtests.test(name):
            answer = reader.send(method, address(path), {})
            assert answer.status_code == 403
            assert "is read-only" in answer.json()["detail"]


def test_an_operator_without_permissions_cannot_write(stored, subtests):
    api_client = Asking(of_operator("sam"))
    drafts.save(SETUP, lambda write: switches.flip(write, "ada", "reading", True))
    before = stored_configuration()
    for method, path, name in WRITES:
        with subtests.test(name):
            answer = api_client.send(method, address(path), {})
            # The required permissions may depend on the body, which is empty: it is invalid, or changes nothing.
            assert answer.status_code in ((403, 422) if path != "/belt" else (200,))
            assert stored_configuration() == before


def test_operation_ids_are_unique():
    names = [name for _, _, name in OPERATIONS]
    assert sorted(set(names)) == sorted(names)


@pytest.fixture
def text(stored: None) -> str:
    return tokens.issue(SETUP, agent="ada").text


@pytest.mark.parametrize(
    "spoil",
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
def test_an_invalid_token_is_rejected(text, spoil):
    valid = Asking(text).get("/agents/ada/surface")
    assert valid.status_code == 200
    answer = Asking(spoil(text)).get("/agents/ada/surface")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_expired_revoked_inactive_and_unknown_tokens_get_the_same_response(text):
    responses = set()
    token = models.ApiToken.objects.get()
    for change in (
        {"expires": timezone.now() - dt.timedelta(seconds=1)},
        {"revoked": timezone.now()},
        {"digest": "0" * 64},
    ):
        models.ApiToken.objects.filter(pk=token.pk).update(
            **{"expires": None, "revoked": None, "digest": token.digest} | change
        )
        answer = Asking(text).get("/agents/ada/surface")
        responses.add((answer.status_code, answer.content, answer.headers["WWW-Authenticate"]))
    sam_token = of_operator("sam")
    logins.User.objects.filter(username="sam").update(is_active=False)
    answer = Asking(sam_token).get("/agents/ada/surface")
    responses.add((answer.status_code, answer.content, answer.headers["WWW-Authenticate"]))
    unknown = Asking(api_tokens.make(lambda letters: letters[3])).get("/agents/ada/surface")
    responses.add((unknown.status_code, unknown.content, unknown.headers["WWW-Authenticate"]))
    assert len(responses) == 1
    assert 'error="invalid_token"' in unknown.headers["WWW-Authenticate"]


def test_the_authorization_scheme_is_case_insensitive(text):
    client = Client(headers={"Authorization": f"bearer  {text}"})
    assert client.get("/api/v1/agents/ada/surface").status_code == 200
    client = Client(headers={"Authorization": f"Basic {text}"})
    assert client.get("/api/v1/agents/ada/surface").status_code == 401


def test_an_operators_current_permissions_apply(stored):
    api_client = Asking(of_operator("sam", "change_agent"))
    call = {"tool": "clock"}
    assert api_client.post("/agents/ada/calls", call).status_code == 200
    logins.User.objects.get(username="sam").user_permissions.clear()
    answer = api_client.post("/agents/ada/calls", call)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "toolbelt.change_agent" in answer.json()["detail"]


def test_responses_may_not_be_stored_by_shared_caches(ada):
    for path in ("/agents/ada/toolkits", "/agents/ada/surface", "/nowhere"):
        assert "private" in ada.get(path).headers["Cache-Control"]


def test_issuing_and_revoking_tokens_makes_no_new_revision(stored):
    def revision() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT number, catalog_stamp FROM toolbelt_revision")
            return cursor.fetchall()

    before = revision()
    issued = tokens.issue(SETUP, agent="ada")
    tokens.revoke(SETUP, issued.token.prefix)
    assert revision() == before
