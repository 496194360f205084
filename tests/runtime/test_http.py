"""Tests that a plugin's HTTP client reaches only public addresses, whatever names and redirects lead to."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from toolbelt.core import addresses
from toolbelt.runtime import http

NAMES = {
    "public.test": ["93.184.215.14"],
    "inside.test": ["10.0.0.7"],
    "mixed.test": ["93.184.215.14", "127.0.0.1"],
    "two.test": ["93.184.215.15", "93.184.215.14"],
}


class RecordingTransport(httpx.AsyncBaseTransport):
    """A transport that answers in place of the network and records requests."""

    def __init__(self) -> None:
        self.sent: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        if request.url.host == "93.184.215.15":
            raise httpx.ConnectError("refused", request=request)
        if request.url.path == "/away":
            return httpx.Response(302, headers={"location": request.url.params["to"]}, request=request)
        return httpx.Response(200, text="there", request=request)


def get(url: str, names: Mapping[str, list[str]] = NAMES) -> tuple[httpx.Response, list[httpx.Request]]:
    inner = RecordingTransport()

    async def resolve(host: str, port: int) -> list[str]:
        if host not in names and not host.replace(".", "").isdigit():
            raise OSError("no such name")
        return names.get(host, [host])

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=http.PublicAddressTransport(inner, resolve)) as client:
            return await client.get(url, follow_redirects=True)

    return asyncio.run(ask()), inner.sent


def test_a_request_goes_to_the_checked_address_with_the_original_host_name() -> None:
    answer, sent = get("https://public.test/a?b=c")

    assert answer.text == "there"
    assert str(answer.url) == "https://public.test/a?b=c"
    assert [str(request.url) for request in sent] == ["https://93.184.215.14/a?b=c"]
    assert sent[0].headers["host"] == "public.test"
    assert sent[0].extensions["sni_hostname"] == "public.test"


def test_the_next_address_of_a_name_is_tried_if_the_first_fails() -> None:
    assert get("https://two.test/")[0].text == "there"


@pytest.mark.parametrize(
    "url",
    [
        "http://inside.test/",
        "http://mixed.test/",
        "http://127.0.0.1/",
        "http://public.test/away?to=http://inside.test/",
        "http://public.test/away?to=http://169.254.169.254/latest/meta-data/",
    ],
)
def test_a_private_address_is_refused_by_name_number_and_redirect(url: str) -> None:
    with pytest.raises(http.AddressRefusedError, match="TOOLBELT_ALLOW_PRIVATE_HTTP"):
        get(url)


def test_an_unresolvable_name_raises_a_connect_error() -> None:
    with pytest.raises(httpx.ConnectError, match=r"nowhere\.test cannot be resolved"):
        get("http://nowhere.test/")


def test_private_addresses_can_be_allowed(settings: Any) -> None:
    settings.TOOLBELT_ALLOW_PRIVATE_HTTP = True

    assert get("http://inside.test/")[0].text == "there"


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("0.0.0.0", False),  # noqa: S104 (nothing is bound)
        ("127.8.8.8", False),
        ("10.1.2.3", False),
        ("100.100.100.200", False),
        ("169.254.169.254", False),
        ("168.63.129.16", False),
        ("192.168.0.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00:ec2::254", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.215.14", True),
        ("64:ff9b::10.0.0.1", False),
        ("64:ff9b::93.184.215.14", True),
        ("2002:7f00:1::", False),
        ("ff02::1", False),
    ],
)
def test_public_addresses_are_distinguished_from_private_ones(address: str, public: bool) -> None:
    assert addresses.is_public(address) is public


def test_a_plugin_s_client_has_timeouts_and_ignores_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    client = http.client()

    assert (client.timeout.connect, client.timeout.read) == (10.0, 30.0)
    assert client._mounts == {}
    asyncio.run(client.aclose())


def compressed(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, headers={"content-encoding": "gzip"}, content=gzip.compress(b"there"))


def get_compressed(monkeypatch: pytest.MonkeyPatch, **headers: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        monkeypatch.setattr(httpx, "AsyncHTTPTransport", lambda **_: httpx.MockTransport(compressed))
        async with http.client() as client:
            return await client.get("http://93.184.215.14/", headers=headers)

    return asyncio.run(ask())


@pytest.mark.parametrize("reaches_private", [False, True])
def test_an_unrequested_compressed_response_is_refused(
    monkeypatch: pytest.MonkeyPatch, settings: Any, reaches_private: bool
) -> None:
    settings.TOOLBELT_ALLOW_PRIVATE_HTTP = reaches_private
    with pytest.raises(http.CompressedError, match=r"sent an unrequested compressed response \(gzip\)"):
        get_compressed(monkeypatch)


def test_a_requested_compressed_response_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = get_compressed(monkeypatch, **{"Accept-Encoding": "br, gzip;q=0.5"})
    assert answer.text == "there"
