"""Tests that surfaces are answered in front of Django, and everything else by Django."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django import urls

from tests.api.conftest import SETUP
from tests.front.conftest import ADDRESS, Answer, Request, Server
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.front import application
from toolbelt.runtime.surfaces import rendering

DECLARED = {"clock": "0123456789abcdef", "gone": "x"}
ANSWERED_IN_FRONT: dict[str, dict[str, Any]] = {
    "no parameters": {},
    "a session": {"query": "session=s1"},
    "a request of a session": {"query": "session=s1&request_id=r9"},
    "parameters in reverse order": {"query": "request_id=r9&session=s1"},
    "non-ASCII characters in an id": {"query": "session=caf%C3%A9+%22au+lait%22%5C"},
    "a subagent": {"query": "subagent=explore"},
    "another ETag": {"headers": {"If-None-Match": '"sha256:0"'}},
    "an ETag with POST": {"method": "POST", "body": {}, "headers": {"If-None-Match": '"sha256:0"'}},
    "a body": {"method": "POST", "body": {"session": "s1", "request_id": "r9"}},
    "a body of nulls": {"method": "POST", "body": {"session": None, "message": None, "declared": None}},
    "a query beside a body": {"method": "POST", "body": {"session": "s1"}, "query": "session=s2"},
    "a message": {"method": "POST", "body": {"session": "s1", "message": "find it"}},
    "a message that matches no tool": {"method": "POST", "body": {"message": "hello"}},
    "a blank message": {"method": "POST", "body": {"message": " \n"}},
    "a lone surrogate in a message": {"method": "POST", "body": b'{"message": "find \\ud83d\\ude00"}'},
    "declared tools": {"method": "POST", "body": {"declared": DECLARED}},
    "no declared tools": {"method": "POST", "body": {"declared": {}}},
    "a charset": {
        "method": "POST",
        "body": {},
        "headers": {"Content-Type": "application/json; charset=utf-8"},
    },
    "a long message": {"method": "POST", "body": {"message": "x" * 10_001}},
    "an agent with focus": {
        "path": "/api/v1/agents/bob/surface",
        "method": "POST",
        "body": {"message": "find"},
    },
    **{f"the format {form}": {"query": f"format={form}"} for form in rendering.FORMATS},
    "a cookie": {"headers": {"Cookie": "sessionid=x"}},
    "a new conversation": {
        "method": "POST",
        "body": {"format": "anthropic", "model": "claude-opus-5-5", "conversation": {"token": None}},
    },
    "a message of a conversation with an unknown token": {
        "method": "POST",
        "body": {
            "format": "openai_responses",
            "message": "find it",
            "conversation": {"token": "tbc1.x", "compacted": True, "hold": True, "platform": "bedrock"},
        },
    },
    "a format and a message": {"method": "POST", "body": {"message": "find", "format": "openai_chat"}},
}
PASSED_TO_DJANGO: dict[str, dict[str, Any]] = {
    "no token": {"token": ""},
    "another scheme": {"headers": {"Authorization": "Basic YTpi"}},
    "a malformed token": {"token": "tb_nonsense"},
    "an unknown token": {"token": "tb_" + "0" * 57},
    "HEAD": {"method": "HEAD"},
    "PUT": {"method": "PUT", "body": {}},
    "OPTIONS": {"method": "OPTIONS"},
    "a slash at the end": {"path": ADDRESS + "/"},
    "an unknown agent": {"path": "/api/v1/agents/nobody/surface"},
    "an impossible agent key": {"path": "/api/v1/agents/a\0b/surface"},
    "an unknown parameter": {"query": "sesion=s1"},
    "a parameter twice": {"query": "session=a&session=b"},
    "an empty session": {"query": "session="},
    "a session that is too long": {"query": "session=" + "x" * 201},
    "bytes that are not UTF-8": {"query": "session=%ff"},
    "an unknown format": {"query": "format=xml"},
    "an unknown subagent": {"query": "subagent=spy"},
    "a body with GET": {"body": {"session": "s1"}},
    "a body that is not JSON": {"method": "POST", "body": b"{"},
    "a body that is not an object": {"method": "POST", "body": []},
    "an unknown key": {"method": "POST", "body": {"sesion": "s1"}},
    "a number for a session": {"method": "POST", "body": {"session": 1}},
    "a list for a format": {"method": "POST", "body": {"format": []}},
    "a number in declared": {"method": "POST", "body": {"declared": {"clock": 1}}},
    "a conversation without a format": {"method": "POST", "body": {"conversation": {}}},
    "an unknown key of a conversation": {
        "method": "POST",
        "body": {"format": "anthropic", "conversation": {"tokens": None}},
    },
    "an unknown platform": {
        "method": "POST",
        "body": {"format": "anthropic", "conversation": {"platform": "moon"}},
    },
    "a conversation in a query": {"query": "format=anthropic&conversation=x"},
    "no content type": {"method": "POST", "body": {}, "headers": {"Content-Type": "(none)"}},
    "a form": {
        "method": "POST",
        "body": b"session=s1",
        "headers": {"Content-Type": "application/x-www-form-urlencoded"},
    },
    "no content length": {
        "method": "POST",
        "body": {},
        "headers": {"Content-Length": "(none)", "Transfer-Encoding": "chunked"},
    },
    "a large body": {"method": "POST", "body": {"message": "x" * 100_000}},
    "any ETag": {"headers": {"If-None-Match": "*"}},
    "several ETags": {"headers": {"If-None-Match": '"a", "b"'}},
    "If-Match": {"headers": {"If-Match": '"a"'}},
    "a host that is not allowed": {"headers": {"Host": "elsewhere.example"}},
    "no host": {"headers": {"Host": "(none)"}},
    "another address": {"path": "/api/v1/agents/ada/toolkits"},
}


def request_specific_parts(answer: Answer) -> dict[str, Any]:
    """Return the parts of an answer that depend on the request."""
    names = {"etag", "cache-control", "content-type", "content-length", "toolbelt-stale"}
    headers = {name.decode().lower(): value.decode() for name, value in answer.headers}
    return {"status": answer.status, "body": answer.body, **{name: headers.get(name) for name in names}}


@pytest.mark.parametrize("name", ["ada", "olga"])
def test_a_supported_request_is_answered_in_front_as_by_django(server, name, request):
    token = request.getfixturevalue(name)
    tokens_of = {"/api/v1/agents/bob/surface": tokens.issue(SETUP, agent="bob").text}
    for what, asked in ANSWERED_IN_FRONT.items():
        question = Request(token=tokens_of.get(asked.get("path", ""), token), **asked)
        worked_out, ready = server.ask_each(question, question)
        expected = request_specific_parts(server.ask_django(question))
        assert (worked_out.status, worked_out.by_django, ready.by_django) == (200, False, False), what
        assert request_specific_parts(worked_out) == request_specific_parts(ready) == expected, what


def test_other_requests_are_passed_on_to_django_unchanged(server, ada):
    server.warm(Request(token=ada))
    for what, asked in PASSED_TO_DJANGO.items():
        question = Request(**{"token": ada, **asked})
        answer = server.ask(question)
        expected = server.ask_django(question)
        assert answer.by_django, what
        assert request_specific_parts(answer) == request_specific_parts(expected), what


def test_an_unchanged_surface_is_answered_with_304(server, ada):
    etag = server.ask(Request(token=ada)).header("etag")
    for given in (etag, f"W/{etag}"):
        answer = server.ask(Request(token=ada, headers={"If-None-Match": given}))
        assert (answer.status, answer.body, answer.by_django) == (304, b"", False)
        assert (answer.header("etag"), answer.header("cache-control")) == (etag, "private, no-cache")


def test_an_answer_has_caching_and_security_headers(server, ada, settings):
    settings.SECURE_HSTS_SECONDS = 60
    answer = server.ask(Request(token=ada, scheme="https"))
    assert (answer.header("vary"), answer.header("x-content-type-options")) == ("Authorization", "nosniff")
    assert answer.header("strict-transport-security").startswith("max-age=60")
    over_http = server.ask(Request(token=ada))
    assert b"strict-transport-security" not in dict(over_http.headers)


def test_plain_http_is_redirected_if_https_is_required(stored, ada, settings):
    settings.SECURE_SSL_REDIRECT = True
    server = Server()
    assert server.ask(Request(token=ada)).status == 301
    assert server.ask(Request(token=ada, scheme="https")).status == 200


def test_expired_foreign_and_invalid_tokens_are_refused(server, ada):
    server.warm(Request(token=ada))
    other = tokens.issue(SETUP, agent="bob").text
    expiring = tokens.issue(SETUP, agent="ada", expires=dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
    assert not server.ask(Request(token=expiring.text)).by_django
    ended = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    models.ApiToken.objects.filter(prefix=expiring.token.prefix).update(expires=ended)
    assert server.ask(Request(token=expiring.text)).status == 401
    assert server.ask(Request(token=other)).status == 404
    assert server.ask(Request(token=ada[:-1] + ("0" if ada[-1] != "0" else "1"))).status == 401


def test_a_subagent_that_the_agent_may_not_use_is_refused(server, ada, olga):
    asked: dict[str, Any] = {"query": "subagent=plan"}
    assert server.ask(Request(token=olga, **asked)).status == 200
    assert server.ask(Request(token=ada, **asked)).status == 409


def test_a_provider_limit_is_reported(server, olga):
    tools = [{"key": f"many{n}", "description": "One of many."} for n in range(129)]
    toolkits = [{"key": "many", "members": [tool["key"] for tool in tools]}]
    agents = [{"key": "zed", "tools_config": {"many": True}}]
    belts.import_(SETUP, {"tools": tools, "toolkits": toolkits, "agents": agents})
    request = Request(token=olga, path="/api/v1/agents/zed/surface", query="format=openai_chat")
    answer = server.ask(request)
    assert (answer.status, answer.json()["code"]) == (409, "provider-limit")


def test_each_request_gets_a_unique_id(server, ada):
    request = Request(token=ada, headers={"X-Request-ID": "what the client calls it"})
    server.warm(request)
    first, second = server.ask_each(request, request)
    assert not first.by_django
    for answer in (first, second):
        request_id = answer.header("x-request-id")
        assert (str(uuid.UUID(request_id)), uuid.UUID(request_id).version, uuid.UUID(request_id).variant) == (
            request_id,
            4,
            uuid.RFC_4122,
        )
    assert first.header("x-request-id") != second.header("x-request-id")


def test_an_incoming_request_id_is_kept_if_trusted(server, ada, settings):
    settings.DJANGO_STRUCTLOG_TRUST_UPSTREAM_REQUEST_ID = True
    request = Request(token=ada, headers={"X-Request-ID": "abc"})
    assert server.ask(request).header("x-request-id") == "abc"


def test_the_url_of_the_surface_view_is_unchanged():
    assert urls.reverse(application.VIEW, kwargs={"agent": "ada"}) == ADDRESS
