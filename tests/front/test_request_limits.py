"""The gate refuses bodies that are too large or too slow, and requests that are too many, before Django is asked."""

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


class Asked:
    """An application behind a gate that receives the whole body, and answers it."""

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
    """Send these parts of a body; then, if it does not end, nothing more."""
    coming = [*parts]

    async def receive() -> dict[str, Any]:
        if coming:
            part = coming.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(coming) or not ends}
        return await asyncio.Future()

    return receive


async def ask(application: Any, about: dict[str, Any], receive: Any) -> Sent:
    sent: Sent = []

    async def send(message: Any) -> None:
        sent.append(message)

    await application(about, receive, send)
    return sent


def answered(
    about: dict[str, Any], receive: Any, behind: Asked | None = None
) -> tuple[int, dict[str, str], bytes]:
    async def asked() -> Sent:
        return await ask(
            request_limits.RequestLimits(behind or Asked(), access_log.AccessLog()), about, receive
        )

    return _read(asyncio.run(asked()))


def _read(sent: Sent) -> tuple[int, dict[str, str], bytes]:
    headers = {bytes(name).decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no refused client be waited for, and write no log."""
    monkeypatch.setattr(request_limits, "LINGER", 0.01)
    monkeypatch.setattr(access_log.AccessLog, "add", lambda self, note: None)


def test_a_body_within_the_limit_arrives_whole() -> None:
    behind = Asked()
    status, _, body = answered(scope(content_length="6"), client(b"abc", b"def"), behind)
    assert (status, body, behind.bodies) == (200, b"done", [b"abcdef"])


@pytest.mark.parametrize(
    "path", ["/healthz", "/", "/login/", "/static/css/base.css", "/metrics", "/admin/login/"]
)
def test_a_body_that_announces_too_much_is_refused_unread(path: str) -> None:
    behind = Asked()

    async def receive() -> Any:
        pytest.fail("somebody asked for the body")

    async def asked() -> Sent:
        given = request_limits.RequestLimits(behind, access_log.AccessLog())
        sent: Sent = []

        async def send(message: Any) -> None:
            sent.append(message)
            if message.get("more_body"):
                raise ConnectionError  # all that matters was sent

        with pytest.raises(ConnectionError):
            await given(scope(path, content_length="400000000"), receive, send)
        return sent

    status, headers, body = _read(asyncio.run(asked()))
    assert (status, headers["connection"], behind.bodies) == (413, "close", [])
    assert headers["content-type"].startswith("text/html")
    assert b"bytes. Send less at a time" in body


@pytest.mark.django_db
def test_a_body_that_grows_beyond_the_limit_is_refused_where_it_does() -> None:
    behind = Asked()
    about = scope(transfer_encoding="chunked")
    parts = [b"x" * 60_000] * 3
    status, _, _ = answered(about, client(*parts, ends=False), behind)
    assert (status, behind.bodies) == (413, [])


@pytest.mark.django_db
def test_a_small_body_of_no_stated_length_is_taken() -> None:
    behind = Asked()
    assert answered(scope(transfer_encoding="chunked"), client(b"a" * 50_000), behind)[0] == 200
    assert behind.bodies == [b"a" * 50_000]


@pytest.mark.django_db(transaction=True)
def test_a_large_body_is_taken_from_a_login_alone() -> None:
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


def test_a_large_body_is_taken_from_a_token_alone(server: Server, ada: str) -> None:
    behind = Asked()

    def post(path: str, token: str) -> bytes:
        about = scope(path, content_length=str(LARGE), authorization=f"Bearer {token}")
        answered(about, client(b"x" * LARGE), behind)
        return behind.bodies.pop()

    for path in ("/api/v1/agents/ada/calls", "/mcp/ada"):
        assert len(post(path, ada)) == LARGE
        # Those say themselves that the token opens nothing; the body is not kept for that.
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
    behind = Asked()
    status, headers, body = answered(scope(path, content_length="100"), client(b"{", ends=False), behind)
    assert (status, headers["content-type"], behind.bodies) == (408, content_type, [])
    assert b"did not arrive within 0.05 s" in body
    assert headers["connection"] == "close"
    if content_type == "application/problem+json":
        assert json.loads(body)["code"] == "request-timeout"


def test_one_request_too_many_is_told_when_to_come_again(settings: Any) -> None:
    settings.TOOLBELT_REQUESTS_AT_ONCE = 2

    async def asked() -> tuple[Sent, Sent]:
        behind = Asked()
        behind.go_on.clear()
        given = request_limits.RequestLimits(behind, access_log.AccessLog())
        others = [asyncio.create_task(ask(given, scope(), client(b""))) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await ask(given, scope(), client(b""))
        behind.go_on.set()
        await asyncio.gather(*others)
        return refused, await ask(given, scope(), client(b""))

    refused, later = asyncio.run(asked())
    status, headers, _ = _read(refused)
    assert (status, headers["retry-after"]) == (503, str(request_limits.RETRY_AFTER))
    assert _read(later)[0] == 200


def test_open_streams_do_not_count(settings: Any) -> None:
    settings.TOOLBELT_REQUESTS_AT_ONCE = 1

    async def asked() -> list[Sent]:
        behind = Asked(b"text/event-stream")
        behind.go_on.clear()
        given = request_limits.RequestLimits(behind, access_log.AccessLog())
        streams = [asyncio.create_task(ask(given, scope(), client(b""))) for _ in range(3)]
        await asyncio.sleep(0.01)
        behind.go_on.set()
        return await asyncio.gather(*streams)

    assert [_read(sent)[0] for sent in asyncio.run(asked())] == [200, 200, 200]


def test_bodies_that_one_address_does_not_end_keep_nobody_else_out() -> None:
    async def asked() -> list[int]:
        given = request_limits.RequestLimits(Asked(), access_log.AccessLog())
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

    assert asyncio.run(asked()) == [503, 200, 200]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/healthz", 400_000_000, "413"),
        ("/login/", LARGE, "413"),
        ("/login/", 100, "200"),
        # Django refuses it by its head, once it knows who asks.
        ("/api/v1/agents/ada/calls", 400_000_000, "200"),
    ],
)
def test_a_wsgi_server_refuses_by_the_announced_length(path: str, length: int, status: str) -> None:
    said: list[str] = []

    def behind(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b""]

    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "CONTENT_LENGTH": str(length),
        "wsgi.url_scheme": "http",
    }
    request_limits.WsgiRequestLimits(behind)(environ, lambda status, headers: said.append(status[:3]))
    assert said == [status]


@pytest.mark.parametrize(
    ("allowed", "peer", "client"),
    [
        (None, "127.0.0.1", "127.0.0.1"),
        (None, "::1", "127.0.0.1"),
        (None, "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1,::1", "127.0.0.1", "198.51.100.1"),
    ],
)
def test_an_address_from_a_header_is_believed_of_named_proxies_alone(
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

    # As uvicorn puts it in front, with its default or with the variable.
    server = proxy_headers.ProxyHeadersMiddleware(application, trusted_hosts=allowed or "127.0.0.1,::1")
    for header in ("198.51.100.1", "198.51.100.1:4711"):
        about = scope(x_forwarded_for=header) | {"client": (peer, 50000)}
        asyncio.run(server(about, None, None))  # type: ignore[arg-type]
    assert seen == [client, client]


def test_the_limits_hold_what_a_belt_needs() -> None:
    head = request_limits.body_head(scope("/belt/", content_length="1"))
    assert head is not None
    assert head.maximum > conf.API_BODY_BYTES


def _request() -> HttpRequest:
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = "192.0.2.7"
    return request
