"""Web: what may be fetched, and how much of it. The servers here are hostile."""

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
    """A body as the network gives it: not known before it is read."""
    for part in parts:
        yield part


def response(body: bytes | Iterator[bytes] = b"", status: int = 200, **headers: str) -> httpx.Response:
    written = {name.replace("_", "-"): value for name, value in headers.items()}
    parts = iter([body]) if isinstance(body, bytes) else body
    return httpx.Response(status, headers=written, content=stream(parts))


def a_bench(answer: Answer, **config: Any) -> fakes.Bench:
    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return fakes.Bench(plugin.Web(), fakes.Runtime(config, http=http))


def fetched(answer: Answer, url: str = "https://example.com/", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = a_bench(answer).call("ada", "web__fetch", url=url, **more)
    return found


def refused(answer: Answer, url: str = "https://example.com/", **config: Any) -> str:
    return a_bench(answer, **config).refuses("ada", "web__fetch", url=url)


def nowhere(request: httpx.Request) -> httpx.Response:
    raise AssertionError(f"a request went out to {request.url}")


def test_a_text_comes_with_its_address_and_status() -> None:
    answer = fetched(
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


def test_a_request_says_who_asks_and_what_can_be_read() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return response(b"x", content_type="text/plain")

    a_bench(answer, user_agent="Reader/1").call("ada", "web__fetch", url="http://example.com")
    assert seen[0].method == "GET"
    assert seen[0].headers["user-agent"] == "Reader/1"
    assert seen[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("url", "words"),
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
def test_what_is_no_address_of_a_page_never_leaves(url: str, words: str) -> None:
    said = refused(nowhere, url)
    assert words in said
    assert "secret" not in said


def test_an_overlong_address_is_refused_also_behind_a_redirect() -> None:
    said = refused(lambda request: response(status=302, location="/" + "x" * addresses.MAX_LENGTH))
    assert "at most 2000 are allowed" in said


def test_a_name_of_another_script_is_found_by_its_ascii_form() -> None:
    assert fetched(lambda request: response(b"x", content_type="text/plain"), "https://exämple.de/ü")[
        "url"
    ] == ("https://xn--exmple-cua.de/%C3%BC")


def test_redirects_are_followed_and_the_last_address_is_told() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/c":
            return response(b"here", content_type="text/plain")
        return response(status=301, location={"/": "/b", "/b": "//other.test/c"}[request.url.path])

    assert fetched(answer)["url"] == "https://other.test/c"


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

    assert fetched(answer(5))["url"] == "https://example.com/5"
    assert "more than 5 redirects" in refused(answer(6))


def test_redirects_in_a_circle_end() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return response(status=302, location="/b" if request.url.path == "/a" else "/a")

    assert "in a circle" in refused(answer, "https://example.com/a")
    assert asked == ["/a", "/b"]


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "https://user:pw@example.com/",
        "http://a\\@b/",
        "ftp://x/",
    ],
)
def test_a_redirect_is_judged_like_an_address(target: str) -> None:
    assert "example.com redirects to" in refused(lambda request: response(status=302, location=target))


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "https://[", "https://xn--/", "\x7f", "http://a:b/"]
)
def test_a_redirect_to_nothing_sensible_is_refused_in_words(target: str) -> None:
    assert "example.com" in refused(lambda request: response(status=302, location=target))


def test_a_redirect_without_a_target_is_an_answer() -> None:
    assert fetched(lambda request: response(b"lost", 302, content_type="text/plain"))["status"] == 302


def test_a_body_without_end_is_cut_at_the_limit() -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 1000
            yield b"x" * 1000

    bench = a_bench(lambda request: response(endless(), content_type="text/plain"), max_body_bytes=100_000)
    answer = bench.call("ada", "web__fetch", url="https://example.com/")
    assert answer["cut_off"]
    assert answer["total_chars"] == 100_000
    assert sent <= 102_000


def test_a_cut_within_a_letter_leaves_the_letters_before_it() -> None:
    bench = a_bench(lambda request: response("ä".encode() * 10, content_type="text/plain"), max_body_bytes=5)
    assert bench.call("ada", "web__fetch", url="https://example.com/")["text"] == "ää"


def test_a_packed_body_is_unpacked() -> None:
    answer = fetched(
        lambda request: response(gzip.compress(b"hello"), content_encoding="gzip", content_type="text/plain")
    )
    assert (answer["text"], answer["cut_off"]) == ("hello", False)


def test_a_small_body_that_unpacks_to_a_huge_one_is_cut_at_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    bench = a_bench(
        lambda request: response(bomb, content_encoding="gzip", content_type="text/plain"),
        max_body_bytes=100_000,
    )
    assert bench.call("ada", "web__fetch", url="https://example.com/")["cut_off"]


def test_a_packed_body_that_never_holds_anything_ends_at_the_limit() -> None:
    def stored() -> Iterator[bytes]:
        packer = zlib.compressobj(wbits=31)
        yield packer.compress(b"a") + packer.flush(zlib.Z_FULL_FLUSH)
        while True:
            yield b"\0\0\0\xff\xff"

    bench = a_bench(
        lambda request: response(stored(), content_encoding="gzip", content_type="text/plain"),
        max_body_bytes=10_000,
    )
    answer = bench.call("ada", "web__fetch", url="https://example.com/")
    assert (answer["text"], answer["cut_off"]) == ("a", True)


def test_a_broken_or_unknown_packing_is_refused() -> None:
    assert "cannot be decompressed" in refused(
        lambda request: response(b"plain", content_encoding="gzip", content_type="text/plain")
    )
    assert "'br'" in refused(lambda request: response(b"x", content_encoding="br", content_type="text/plain"))


def test_a_packed_body_that_breaks_off_is_marked_as_cut() -> None:
    packed = gzip.compress(b"hello " * 1000)[:-8]
    assert fetched(lambda request: response(packed, content_encoding="gzip", content_type="text/plain"))[
        "cut_off"
    ]


@pytest.mark.parametrize(
    "kind", ["image/png", "application/pdf", "application/octet-stream", "video/mp4", "x" * 999]
)
def test_what_is_no_text_is_refused_before_it_is_read(kind: str) -> None:
    def unread() -> Iterator[bytes]:
        yield pytest.fail("the body was read")

    said = refused(lambda request: response(unread(), content_type=kind))
    assert "Only text can be read" in said
    assert len(said) < 300


@pytest.mark.parametrize(
    "kind", ["text/csv", "application/json", "application/ld+json", "TEXT/Plain; charset=utf-8"]
)
def test_text_of_every_kind_is_read_as_it_is(kind: str) -> None:
    assert fetched(lambda request: response(b'{"a": "<b>"}', content_type=kind))["text"] == '{"a": "<b>"}'


def test_content_of_no_stated_kind_is_refused_unless_there_is_none() -> None:
    assert "no content type" in refused(lambda request: response(b"\x7fELF"))
    assert fetched(lambda request: response(status=204))["text"] == ""


def test_a_server_that_dawdles_is_given_up() -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        return response()

    assert "took too long" in refused(slow, seconds=1)  # type: ignore[arg-type]


def test_an_address_that_the_runtime_refuses_is_told_without_what_is_internal() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("wiki is at 10.1.2.3, which is not a public address")

    bench = a_bench(answer)
    said = bench.refuses("ada", "web__fetch", url="https://wiki/")
    assert said == "wiki cannot be reached: it does not exist, or has no public address."
    assert "10.1.2.3" in bench.runtime.log.events[0][1]["error"]


@pytest.mark.parametrize(
    "error", [httpx.RemoteProtocolError("?"), httpx.ReadError("?"), httpx.DecodingError("?")]
)
def test_a_server_that_breaks_the_rules_is_told_in_words(error: httpx.HTTPError) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error

    assert "did not send a valid HTTP response" in refused(answer)


def test_a_long_text_comes_in_parts_that_fit_together() -> None:
    text = "".join(f"{number} " for number in range(5_000))
    parts: list[str] = []
    start: int | None = 0
    while start is not None:
        answer = fetched(
            lambda request: response(text.encode(), content_type="text/plain"), max_chars=7_000, start=start
        )
        parts.append(answer["text"])
        start = answer["next_start"]
    assert "".join(parts) == text
    assert len(parts) == 4


def test_a_start_behind_the_end_is_told() -> None:
    said = a_bench(lambda request: response(b"abc", content_type="text/plain")).refuses(
        "ada", "web__fetch", url="https://example.com/", start=3
    )
    assert said == "The text has only 3 characters, so it cannot be read from 3. Use a smaller start."


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"max_body_bytes": "lots"}, "web is not valid: max_body_bytes: Input should be a valid integer"),
        ({"seconds": 0}, "seconds: Input should be greater than or equal to 1"),
        ({"seconds": True}, "seconds: not a number"),
        ({"user_agent": "a\nHost: b"}, "user_agent: String should match pattern"),
        ({"proxy": "x"}, "web has no setting 'proxy'"),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        a_bench(nowhere, **config)
