"""Tests of the web plugin: which addresses may be fetched, and how much of a response. The servers are hostile."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.plugins.builtin import fakes
from toolbelt.plugins.builtin.web import addresses, plugin

Answer = Callable[[httpx.Request], httpx.Response]


async def stream(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a body in parts, so that its length is unknown until it is read."""
    for part in parts:
        yield part


def response(body: bytes | Iterator[bytes] = b"", status: int = 200, **headers: str) -> httpx.Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    parts = iter([body]) if isinstance(body, bytes) else body
    return httpx.Response(status, headers=fields, content=stream(parts))


def make_harness(answer: Answer, **config: Any) -> fakes.Harness:
    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return fakes.Harness(plugin.Web(), fakes.Runtime(config, http=http))


def fetch(answer: Answer, url: str = "https://example.com/", **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = make_harness(answer).call("ada", "web__fetch", url=url, **options)
    return result


def refusal(answer: Answer, url: str = "https://example.com/", **config: Any) -> str:
    return make_harness(answer, **config).refusal("ada", "web__fetch", url=url)


def no_request(request: httpx.Request) -> httpx.Response:
    raise AssertionError(f"a request went out to {request.url}")


def test_a_text_is_returned_with_its_address_and_status() -> None:
    answer = fetch(
        lambda request: response(b"hello", 404, content_type="text/plain"), "HTTPS://Example.com/a#b"
    )
    assert answer == {
        "url": "https://example.com/a",
        "title": "",
        "status": 404,
        "text": "hello",
        "next_start": None,
        "total_chars": 5,
        "cut_off": False,
    }


def test_a_request_sends_the_user_agent_and_accepted_encoding() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return response(b"x", content_type="text/plain")

    make_harness(answer, user_agent="Reader/1").call("ada", "web__fetch", url="http://example.com")
    assert requests[0].method == "GET"
    assert requests[0].headers["user-agent"] == "Reader/1"
    assert requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "'file:'"),
        ("javascript:alert(1)", "'javascript:'"),
        ("data:text/html,<b>x", "'data:'"),
        ("ftp://example.com/", "'ftp:'"),
        ("gopher://example.com:70/", "'gopher:'"),
        ("example.com/page", "without a scheme"),
        ("//example.com/", "without a scheme"),
        ("https://user:secret@example.com/", "user name or a password"),
        ("https://example.com@evil.test/", "user name or a password"),
        ("https://example.com\\@evil.test/", "backslash"),
        ("https://example.com/ x", "space"),
        ("https://example.com/\r\nHost: evil.test", "space"),
        ("https://exa\x00mple.com/", "control"),
        ("https:///path", "no valid host"),
        ("https:path", "no valid host"),
        ("https://ex%61mple.com/", "no valid host"),
        ("https://a..b/", "no valid host"),
        ("https://xn--/", "not a URL"),
        ("https://[::1", "not a URL"),
        ("https://example.com:99999/", "99999 is not a valid port"),
        ("https://example.com:0/", "0 is not a valid port"),
        ("https://example.com/\ud800", "url: Input should be a valid string"),
        ("?", "without a scheme"),
    ],
)
def test_an_invalid_url_is_refused_without_sending_a_request(url: str, reason: str) -> None:
    message = refusal(no_request, url)
    assert reason in message
    assert "secret" not in message


def test_a_redirect_to_an_overlong_address_is_refused() -> None:
    message = refusal(lambda request: response(status=302, location="/" + "x" * addresses.MAX_LENGTH))
    assert "at most 2000 are allowed" in message


def test_an_international_host_name_is_converted_to_ascii() -> None:
    assert fetch(lambda request: response(b"x", content_type="text/plain"), "https://exämple.de/ü")[
        "url"
    ] == ("https://xn--exmple-cua.de/%C3%BC")


def test_redirects_are_followed_and_the_final_address_is_returned() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/c":
            return response(b"here", content_type="text/plain")
        return response(status=301, location={"/": "/b", "/b": "//other.test/c"}[request.url.path])

    assert fetch(answer)["url"] == "https://other.test/c"


def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    def answer(last: int) -> Answer:
        def step(request: httpx.Request) -> httpx.Response:
            number = int(request.url.path.strip("/") or 0)
            return (
                response(b"x", content_type="text/plain")
                if number == last
                else response(status=307, location=f"/{number + 1}")
            )

        return step

    assert fetch(answer(5))["url"] == "https://example.com/5"
    assert "more than 5 redirects" in refusal(answer(6))


def test_circular_redirects_are_refused() -> None:
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return response(status=302, location="/b" if request.url.path == "/a" else "/a")

    assert "in a circle" in refusal(answer, "https://example.com/a")
    assert paths == ["/a", "/b"]


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "https://user:pw@example.com/",
        "http://a\\@b/",
        "ftp://x/",
    ],
)
def test_a_redirect_target_is_checked_like_an_address(target: str) -> None:
    assert "example.com redirects to" in refusal(lambda request: response(status=302, location=target))


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "https://[", "https://xn--/", "\x7f", "http://a:b/"]
)
def test_a_malformed_redirect_target_is_refused(target: str) -> None:
    assert "example.com" in refusal(lambda request: response(status=302, location=target))


def test_a_redirect_without_a_target_is_returned_as_a_response() -> None:
    assert fetch(lambda request: response(b"lost", 302, content_type="text/plain"))["status"] == 302


def test_an_endless_body_is_truncated_at_the_limit() -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 1000
            yield b"x" * 1000

    harness = make_harness(
        lambda request: response(endless(), content_type="text/plain"), max_body_bytes=100_000
    )
    answer = harness.call("ada", "web__fetch", url="https://example.com/")
    assert answer["cut_off"]
    assert answer["total_chars"] == 100_000
    assert sent <= 102_000


def test_truncation_within_a_character_drops_that_character() -> None:
    harness = make_harness(
        lambda request: response("ä".encode() * 10, content_type="text/plain"), max_body_bytes=5
    )
    assert harness.call("ada", "web__fetch", url="https://example.com/")["text"] == "ää"


def test_a_compressed_body_is_decompressed() -> None:
    answer = fetch(
        lambda request: response(gzip.compress(b"hello"), content_encoding="gzip", content_type="text/plain")
    )
    assert (answer["text"], answer["cut_off"]) == ("hello", False)


def test_a_decompression_bomb_is_truncated_at_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    harness = make_harness(
        lambda request: response(bomb, content_encoding="gzip", content_type="text/plain"),
        max_body_bytes=100_000,
    )
    assert harness.call("ada", "web__fetch", url="https://example.com/")["cut_off"]


def test_an_endless_compressed_body_without_content_is_truncated() -> None:
    def empty_blocks() -> Iterator[bytes]:
        compressor = zlib.compressobj(wbits=31)
        yield compressor.compress(b"a") + compressor.flush(zlib.Z_FULL_FLUSH)
        while True:
            yield b"\0\0\0\xff\xff"

    harness = make_harness(
        lambda request: response(empty_blocks(), content_encoding="gzip", content_type="text/plain"),
        max_body_bytes=10_000,
    )
    answer = harness.call("ada", "web__fetch", url="https://example.com/")
    assert (answer["text"], answer["cut_off"]) == ("a", True)


def test_invalid_or_unknown_compression_is_refused() -> None:
    assert "cannot be decompressed" in refusal(
        lambda request: response(b"plain", content_encoding="gzip", content_type="text/plain")
    )
    assert "'br'" in refusal(lambda request: response(b"x", content_encoding="br", content_type="text/plain"))


def test_an_incomplete_compressed_body_is_marked_as_cut_off() -> None:
    compressed = gzip.compress(b"hello " * 1000)[:-8]
    assert fetch(lambda request: response(compressed, content_encoding="gzip", content_type="text/plain"))[
        "cut_off"
    ]


@pytest.mark.parametrize(
    "kind", ["image/png", "application/pdf", "application/octet-stream", "video/mp4", "x" * 999]
)
def test_a_response_that_is_not_text_is_refused_without_reading_its_body(kind: str) -> None:
    def unread() -> Iterator[bytes]:
        yield pytest.fail("the body was read")

    message = refusal(lambda request: response(unread(), content_type=kind))
    assert "Only text can be read" in message
    assert len(message) < 300


@pytest.mark.parametrize(
    "kind", ["text/csv", "application/json", "application/ld+json", "TEXT/Plain; charset=utf-8"]
)
def test_text_that_is_not_html_is_returned_unchanged(kind: str) -> None:
    assert fetch(lambda request: response(b'{"a": "<b>"}', content_type=kind))["text"] == '{"a": "<b>"}'


def test_a_body_without_a_content_type_is_refused_unless_it_is_empty() -> None:
    assert "no content type" in refusal(lambda request: response(b"\x7fELF"))
    assert fetch(lambda request: response(status=204))["text"] == ""


def test_a_slow_server_times_out() -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        return response()

    assert "took too long" in refusal(slow, seconds=1)  # type: ignore[arg-type]


def test_a_refused_address_is_reported_without_internal_addresses() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("wiki is at 10.1.2.3, which is not a public address")

    harness = make_harness(answer)
    message = harness.refusal("ada", "web__fetch", url="https://wiki/")
    assert message == "wiki cannot be reached: it does not exist, or has no public address."
    assert "10.1.2.3" in harness.runtime.log.events[0][1]["error"]


@pytest.mark.parametrize(
    "error", [httpx.RemoteProtocolError("?"), httpx.ReadError("?"), httpx.DecodingError("?")]
)
def test_a_protocol_error_is_reported_as_an_invalid_response(error: httpx.HTTPError) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error

    assert "did not send a valid HTTP response" in refusal(answer)


def test_a_long_text_is_returned_in_consecutive_parts() -> None:
    text = "".join(f"{number} " for number in range(5_000))
    parts: list[str] = []
    start: int | None = 0
    while start is not None:
        answer = fetch(
            lambda request: response(text.encode(), content_type="text/plain"), max_chars=7_000, start=start
        )
        parts.append(answer["text"])
        start = answer["next_start"]
    assert "".join(parts) == text
    assert len(parts) == 4


def test_a_start_past_the_end_is_refused() -> None:
    message = make_harness(lambda request: response(b"abc", content_type="text/plain")).refusal(
        "ada", "web__fetch", url="https://example.com/", start=3
    )
    assert message == "The text has only 3 characters, so it cannot be read from 3. Use a smaller start."


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"max_body_bytes": "lots"}, "web is not valid: max_body_bytes: Input should be a valid integer"),
        ({"seconds": 0}, "seconds: Input should be greater than or equal to 1"),
        ({"seconds": True}, "seconds: not a number"),
        ({"user_agent": "a\nHost: b"}, "user_agent: String should match pattern"),
        ({"proxy": "x"}, "web has no setting 'proxy'"),
    ],
)
def test_an_invalid_setting_is_reported_by_name(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make_harness(no_request, **config)
