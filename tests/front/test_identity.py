"""Is the answer in front of Django the one that Django gives, header by header and byte by byte?"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django import urls

from tests.api.conftest import SETUP
from tests.front.conftest import ADDRESS, Request, Server
from toolbelt import models
from toolbelt.control import belts, tokens
from toolbelt.front import requests
from toolbelt.runtime import rendering

GIVEN = {"clock": "0123456789abcdef", "gone": "x"}
PLAIN: dict[str, dict[str, Any]] = {
    "nothing else": {},
    "a session": {"query": "session=s1"},
    "a request of a session": {"query": "session=s1&request_id=r9"},
    "the other way round": {"query": "request_id=r9&session=s1"},
    "words in an id": {"query": "session=caf%C3%A9+%22au+lait%22%5C"},
    "a subagent": {"query": "subagent=explore"},
    "another ETag": {"headers": {"If-None-Match": '"sha256:0"'}},
    "an ETag for the asking": {"method": "POST", "body": {}, "headers": {"If-None-Match": '"sha256:0"'}},
    "a body": {"method": "POST", "body": {"session": "s1", "request_id": "r9"}},
    "a body of nulls": {"method": "POST", "body": {"session": None, "message": None, "declared": None}},
    "a query beside a body": {"method": "POST", "body": {"session": "s1"}, "query": "session=s2"},
    "a message": {"method": "POST", "body": {"session": "s1", "message": "find it"}},
    "a message about nothing": {"method": "POST", "body": {"message": "hello"}},
    "a blank message": {"method": "POST", "body": {"message": " \n"}},
    "half a character in a message": {"method": "POST", "body": b'{"message": "find \\ud83d\\ude00"}'},
    "what was declared": {"method": "POST", "body": {"declared": GIVEN}},
    "nothing declared": {"method": "POST", "body": {"declared": {}}},
    "a charset": {
        "method": "POST",
        "body": {},
        "headers": {"Content-Type": "application/json; charset=utf-8"},
    },
    "bob, who focuses": {"path": "/api/v1/agents/bob/surface", "method": "POST", "body": {"message": "find"}},
    **{f"the format {form}": {"query": f"format={form}"} for form in rendering.FORMATS},
    "a format and a message": {"method": "POST", "body": {"message": "find", "format": "openai_chat"}},
}
FOR_DJANGO: dict[str, dict[str, Any]] = {
    "no token": {"token": ""},
    "another scheme": {"headers": {"Authorization": "Basic YTpi"}},
    "a token that is none": {"token": "tb_nonsense"},
    "a token of nobody's": {"token": "tb_" + "0" * 57},
    "HEAD": {"method": "HEAD"},
    "PUT": {"method": "PUT", "body": {}},
    "OPTIONS": {"method": "OPTIONS"},
    "a slash at the end": {"path": ADDRESS + "/"},
    "an agent that is not there": {"path": "/api/v1/agents/nobody/surface"},
    "an agent that cannot be": {"path": "/api/v1/agents/a\0b/surface"},
    "an unknown parameter": {"query": "sesion=s1"},
    "a parameter twice": {"query": "session=a&session=b"},
    "an empty session": {"query": "session="},
    "a session that is too long": {"query": "session=" + "x" * 201},
    "bytes that are no text": {"query": "session=%ff"},
    "a format that is not there": {"query": "format=xml"},
    "a subagent that is not there": {"query": "subagent=spy"},
    "a body with GET": {"body": {"session": "s1"}},
    "a body that is not JSON": {"method": "POST", "body": b"{"},
    "a body that is no object": {"method": "POST", "body": []},
    "an unknown key": {"method": "POST", "body": {"sesion": "s1"}},
    "a number for a session": {"method": "POST", "body": {"session": 1}},
    "a list for a format": {"method": "POST", "body": {"format": []}},
    "a number in declared": {"method": "POST", "body": {"declared": {"clock": 1}}},
    "no type of the body": {"method": "POST", "body": {}, "headers": {"Content-Type": "(none)"}},
    "a form": {
        "method": "POST",
        "body": b"session=s1",
        "headers": {"Content-Type": "application/x-www-form-urlencoded"},
    },
    "no length": {
        "method": "POST",
        "body": {},
        "headers": {"Content-Length": "(none)", "Transfer-Encoding": "chunked"},
    },
    "a large body": {"method": "POST", "body": {"message": "x" * 100_000}},
    "a long message": {"method": "POST", "body": {"message": "x" * 10_001}},
    "any ETag": {"headers": {"If-None-Match": "*"}},
    "several ETags": {"headers": {"If-None-Match": '"a", "b"'}},
    "If-Match": {"headers": {"If-Match": '"a"'}},
    "a cookie": {"headers": {"Cookie": "sessionid=x"}},
    "a host that is not ours": {"headers": {"Host": "elsewhere.example"}},
    "no host": {"headers": {"Host": "(none)"}},
    "another address": {"path": "/api/v1/agents/ada/toolkits"},
}


def like_django(server: Server, request: Request) -> bool:
    """Send it until it is as ready as it will be; compare it with Django's answer, and say who gave it."""
    server.warm(request)
    answer, expected = server.ask(request), server.ask_django(request)
    assert answer.on_the_wire == expected.on_the_wire
    return not answer.by_django


@pytest.mark.parametrize("name", ["ada", "olga"])
def test_plain_questions_are_answered_in_front_like_django_does(server, name, request):
    token = request.getfixturevalue(name)
    tokens_of = {"/api/v1/agents/bob/surface": tokens.issue(SETUP, agent="bob").text}
    for what, asked in PLAIN.items():
        own = tokens_of.get(asked.get("path", ""), token)
        assert like_django(server, Request(token=own, **asked)), what


def test_whatever_else_is_answered_by_django(server, ada):
    server.warm(Request(token=ada))
    for what, asked in FOR_DJANGO.items():
        assert not like_django(server, Request(**{"token": ada, **asked})), what


def test_an_unchanged_surface_is_not_sent_again(server, ada):
    etag = server.ask(Request(token=ada)).header("etag")
    for given in (etag, f"W/{etag}"):
        request = Request(token=ada, headers={"If-None-Match": given})
        assert like_django(server, request)
        assert server.ask(request).status == 304


def test_tokens_that_open_nothing_open_nothing_in_front(server, ada):
    server.warm(Request(token=ada))
    other = tokens.issue(SETUP, agent="bob").text
    over = tokens.issue(SETUP, agent="ada", expires=dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
    assert like_django(server, Request(token=over.text))
    ended = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    models.ApiToken.objects.filter(prefix=over.token.prefix).update(expires=ended)
    assert server.ask(Request(token=over.text)).status == 401
    assert server.ask(Request(token=other)).status == 404
    assert server.ask(Request(token=ada[:-1] + ("0" if ada[-1] != "0" else "1"))).status == 401


def test_a_subagent_that_the_agent_may_not_ask_for_is_refused_in_front_too(server, ada, olga):
    asked: dict[str, Any] = {"query": "subagent=plan"}
    assert like_django(server, Request(token=olga, **asked))
    assert not like_django(server, Request(token=ada, **asked))
    assert server.ask(Request(token=ada, **asked)).status == 409


def test_what_a_provider_does_not_take_is_said_by_django(server, olga):
    tools = [{"key": f"many{n}", "description": "One of many."} for n in range(129)]
    toolkits = [{"key": "many", "members": [one["key"] for one in tools]}]
    agents = [{"key": "zed", "tools_config": {"many": True}}]
    belts.import_(SETUP, {"tools": tools, "toolkits": toolkits, "agents": agents})
    request = Request(token=olga, path="/api/v1/agents/zed/surface", query="format=openai_chat")
    assert not like_django(server, request)
    assert server.ask(request).status == 409


def test_each_request_gets_an_id_of_its_own(server, ada):
    request = Request(token=ada, headers={"X-Request-ID": "what the client calls it"})
    server.warm(request)
    one, other = server.ask_all(request, request)
    assert not one.by_django
    for answer in (one, other):
        told = answer.header("x-request-id")
        assert (str(uuid.UUID(told)), uuid.UUID(told).version, uuid.UUID(told).variant) == (
            told,
            4,
            uuid.RFC_4122,
        )
    assert one.header("x-request-id") != other.header("x-request-id")


def test_ids_that_come_in_are_for_django_where_the_installation_goes_by_them(server, ada, settings):
    settings.DJANGO_STRUCTLOG_TRUST_UPSTREAM_REQUEST_ID = True
    requests._meanings.cache_clear()
    try:
        request = Request(token=ada, headers={"X-Request-ID": "abc"})
        server.warm(request)
        assert server.ask(request).header("x-request-id") == "abc"
    finally:
        requests._meanings.cache_clear()


def test_the_address_is_the_api_s():
    assert urls.reverse("api:get_surface", kwargs={"agent": "ada"}) == ADDRESS


def test_headers_are_learned_anew_for_each_scheme_host_and_method(server, ada):
    server.warm(Request(token=ada))
    for other in ({"scheme": "https"}, {"headers": {"Host": "localhost"}}, {"method": "POST", "body": {}}):
        first, second = server.ask_all(Request(token=ada, **other), Request(token=ada, **other))
        assert (first.by_django, second.by_django) == (True, False)
        assert first.on_the_wire == second.on_the_wire
