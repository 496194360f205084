"""Tests that too large or slow bodies and too many requests are refused before they reach Django."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth import models as auth_models
from django.http import HttpRequest
from django.test import Client
from uvicorn.middleware import proxy_headers

from tests.front.conftest import Server
from toolbelt import conf
from toolbelt.front import access_log, proxies, request_limits

LARGE = 200_000
Sent = list[dict[str, Any]]


def scope(path: str = "/healthz", **headers: str) -> dict[str, Any]:
    given = {"host": "testserver", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("192.0.2.7", 50000),
        "server": ("testserver", 80),
    }


class EchoApplication:
    """An application behind the limits that reads the whole body and answers."""

    def __init__(self, content_type: bytes = b"text/plain") -> None:
        self.bodies: list[bytes] = []
        self.content_type = content_type
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        self.bodies.append(body)
        headers = [(b"content-type", self.content_type)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self.go_on.wait()
        await send({"type": "http.response.body", "body": b"done"})


def client(*parts: bytes, ends: bool = True) -> Callable[[], Awaitable[dict[str, Any]]]:
    """Return a client that sends these parts of a body and, if it does not end, then nothing more."""
    remaining = [*parts]

    async def receive() -> dict[str, Any]:
        if remaining:
            part = remaining.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(remaining) or not ends}
        return await asyncio.Future()

    return receive


async def ask(application: Any, about: dict[str, Any], receive: Any) -> Sent:
    sent: Sent = []

    async def send(message: Any) -> None:
        sent.append(message)

    await application(about, receive, send)
    return sent


def answered(
    about: dict[str, Any], receive: Any, behind: EchoApplication | None = None
) -> tuple[int, dict[str, str], bytes]:
    async def scenario() -> Sent:
        return await ask(
            request_limits.RequestLimits(behind or EchoApplication(), access_log.AccessLog()), about, receive
        )

    return _read(asyncio.run(scenario()))


def _read(sent: Sent) -> tuple[int, dict[str, str], bytes]:
    headers = {bytes(name).decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the linger of refused clients short, and write no log."""
    monkeypatch.setattr(request_limits, "LINGER", 0.01)
    monkeypatch.setattr(access_log.AccessLog, "add", lambda self, note: None)


def test_a_body_within_the_limit_arrives_whole() -> None:
    behind = EchoApplication()
    status, _, body = answered(scope(content_length="6"), client(b"abc", b"def"), behind)
    assert (status, body, behind.bodies) == (200, b"done", [b"abcdef"])


@pytest.mark.parametrize("path", ["/healthz", "/", "/login/", "/static/css/base.css", "/metrics"])
def test_a_body_with_too_large_a_content_length_is_refused_unread(path: str) -> None:
    behind = EchoApplication()

    async def receive() -> Any:
        pytest.fail("the body was read")

    async def scenario() -> Sent:
        given = request_limits.RequestLimits(behind, access_log.AccessLog())
        sent: Sent = []

        async def send(message: Any) -> None:
            sent.append(message)
            if message.get("more_body"):
                raise ConnectionError  # the rest of the response does not matter

        with pytest.raises(ConnectionError):
            await given(scope(path, content_length="400000000"), receive, send)
        return sent

    status, headers, body = _read(asyncio.run(scenario()))
    assert (status, headers["connection"], behind.bodies) == (413, "close", [])
    assert headers["content-type"].startswith("text/html")
    assert b"bytes. Send less at a time" in body


@pytest.mark.django_db
def test_a_chunked_body_is_refused_when_it_exceeds_the_limit() -> None:
    behind = EchoApplication()
    about = scope(transfer_encoding="chunked")
    parts = [b"x" * 60_000] * 3
    status, _, _ = answered(about, client(*parts, ends=False), behind)
    assert (status, behind.bodies) == (413, [])


@pytest.mark.django_db
def test_a_small_chunked_body_is_accepted() -> None:
    behind = EchoApplication()
    assert answered(scope(transfer_encoding="chunked"), client(b"a" * 50_000), behind)[0] == 200
    assert behind.bodies == [b"a" * 50_000]


@pytest.mark.django_db(transaction=True)
def test_a_large_body_is_accepted_only_with_a_login() -> None:
    auth_models.User.objects.create_user("olive", password="correct horse")
    browser = Client()
    assert browser.login(username="olive", password="correct horse", request=_request())
    cookie = f"sessionid={browser.cookies['sessionid'].value}"

    def post(cookie: str) -> int:
        about = scope("/belt/", content_length=str(LARGE), cookie=cookie)
        return answered(about, client(b"x" * LARGE))[0]

    assert post(cookie) == 200
    assert [post("sessionid=" + "a" * 32), post("")] == [413, 413]
    browser.logout()
    assert post(cookie) == 413


def test_a_large_body_is_accepted_only_with_a_valid_token(server: Server, ada: str) -> None:
    behind = EchoApplication()

    def post(path: str, token: str) -> bytes:
        about = scope(path, content_length=str(LARGE), authorization=f"Bearer {token}")
        answered(about, client(b"x" * LARGE), behind)
        return behind.bodies.pop()

    for path in ("/api/v1/agents/ada/calls", "/mcp/ada"):
        assert len(post(path, ada)) == LARGE
        # The views behind refuse the token themselves and need no body for that.
        assert post(path, "tb_" + "0" * 57) == b""


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/api/v1/agents/ada/calls", "application/problem+json"),
        ("/mcp/ada", "application/json"),
        ("/login/", "text/html; charset=utf-8"),
        ("/healthz", "text/html; charset=utf-8"),
    ],
)
def test_a_body_that_does_not_arrive_in_time_is_refused(path: str, content_type: str, settings: Any) -> None:
    settings.TOOLBELT_BODY_SECONDS = 0.05
    behind = EchoApplication()
    status, headers, body = answered(scope(path, content_length="100"), client(b"{", ends=False), behind)
    assert (status, headers["content-type"], behind.bodies) == (408, content_type, [])
    assert b"did not arrive within 0.05 s" in body
    assert headers["connection"] == "close"
    if content_type == "application/problem+json":
        assert json.loads(body)["code"] == "request-timeout"


def test_a_request_over_the_limit_gets_a_retry_after(settings: Any) -> None:
    settings.TOOLBELT_REQUESTS_AT_ONCE = 2

    async def scenario() -> tuple[Sent, Sent]:
        behind = EchoApplication()
        behind.go_on.clear()
        given = request_limits.RequestLimits(behind, access_log.AccessLog())
        others = [asyncio.create_task(ask(given, scope(), client(b""))) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await ask(given, scope(), client(b""))
        behind.go_on.set()
        await asyncio.gather(*others)
        return refused, await ask(given, scope(), client(b""))

    refused, later = asyncio.run(scenario())
    status, headers, _ = _read(refused)
    assert (status, headers["retry-after"]) == (503, str(request_limits.RETRY_AFTER))
    assert _read(later)[0] == 200


def test_open_streams_do_not_count_against_the_request_limit(settings: Any) -> None:
    settings.TOOLBELT_REQUESTS_AT_ONCE = 1

    async def scenario() -> list[Sent]:
        behind = EchoApplication(b"text/event-stream")
        behind.go_on.clear()
        given = request_limits.RequestLimits(behind, access_log.AccessLog())
        streams = [asyncio.create_task(ask(given, scope(), client(b""))) for _ in range(3)]
        await asyncio.sleep(0.01)
        behind.go_on.set()
        return await asyncio.gather(*streams)

    assert [_read(sent)[0] for sent in asyncio.run(scenario())] == [200, 200, 200]


def test_unfinished_bodies_of_one_address_do_not_block_other_addresses() -> None:
    async def scenario() -> list[int]:
        given = request_limits.RequestLimits(EchoApplication(), access_log.AccessLog())
        slow = [
            asyncio.create_task(ask(given, scope(content_length="9"), client(b"x", ends=False)))
            for _ in range(request_limits.MAX_BODIES_OF_ADDRESS)
        ]
        await asyncio.sleep(0.01)
        same = await ask(given, scope(content_length="1"), client(b"x"))
        other = await ask(given, scope(content_length="1") | {"client": ("192.0.2.8", 1)}, client(b"x"))
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        again = await ask(given, scope(content_length="1"), client(b"x"))
        return [_read(sent)[0] for sent in (same, other, again)]

    assert asyncio.run(scenario()) == [503, 200, 200]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/healthz", 400_000_000, "413"),
        ("/login/", LARGE, "413"),
        ("/login/", 100, "200"),
        # Django refuses it by its head, once the client is authenticated.
        ("/api/v1/agents/ada/calls", 400_000_000, "200"),
    ],
)
def test_a_wsgi_server_refuses_by_content_length(path: str, length: int, status: str) -> None:
    statuses: list[str] = []

    def behind(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b""]

    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "CONTENT_LENGTH": str(length),
        "wsgi.url_scheme": "http",
    }
    request_limits.WsgiRequestLimits(behind)(environ, lambda status, headers: statuses.append(status[:3]))
    assert statuses == [status]


@pytest.mark.parametrize(
    ("allowed", "peer", "client"),
    [
        (None, "127.0.0.1", "127.0.0.1"),
        (None, "::1", "127.0.0.1"),
        (None, "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1,::1", "127.0.0.1", "198.51.100.1"),
    ],
)
def test_forwarded_addresses_are_trusted_only_from_configured_proxies(
    monkeypatch: pytest.MonkeyPatch, allowed: str | None, peer: str, client: str
) -> None:
    if allowed is None:
        monkeypatch.delenv(proxies.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(proxies.VARIABLE, allowed)
    seen: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        proxies.check_client(scope)
        seen.append(scope["client"][0])

    # As uvicorn wraps it, with its default or with the variable.
    server = proxy_headers.ProxyHeadersMiddleware(application, trusted_hosts=allowed or "127.0.0.1,::1")
    for header in ("198.51.100.1", "198.51.100.1:4711"):
        about = scope(x_forwarded_for=header) | {"client": (peer, 50000)}
        asyncio.run(server(about, None, None))  # type: ignore[arg-type]
    assert seen == [client, client]


def test_a_belt_may_be_larger_than_an_api_body() -> None:
    head = request_limits.body_head(scope("/belt/", content_length="1"))
    assert head is not None
    assert head.maximum > conf.API_BODY_BYTES


def _request() -> HttpRequest:
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = "192.0.2.7"
    return request
