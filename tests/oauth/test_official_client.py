"""Tests that the official Python client signs in by itself, knowing only an agent's address, over real connections."""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import mcp
import pydantic
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from mcp.client import auth, streamable_http
from mcp.shared import auth as shared_auth

from tests import fast_fixtures
from tests.mcp.conftest import Endpoint
from tests.mcp.test_official_client import served
from tests.oauth.conftest import came_back
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import client_connections

SECONDS = 60
REDIRECT = pydantic.AnyUrl("http://localhost:3030/callback")


class Storage:
    """What the client keeps."""

    def __init__(self) -> None:
        self.tokens: shared_auth.OAuthToken | None = None
        self.client: shared_auth.OAuthClientInformationFull | None = None

    @property
    def access_token(self) -> str:
        assert self.tokens is not None
        return self.tokens.access_token

    async def get_tokens(self) -> shared_auth.OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: shared_auth.OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> shared_auth.OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: shared_auth.OAuthClientInformationFull) -> None:
        self.client = client_info


class Person:
    """A person in a browser, who allows what they are asked."""

    def __init__(self, user: Any) -> None:
        self.user = user
        self.asked = 0
        self.back: dict[str, str] = {}

    async def open(self, address: str) -> None:
        self.asked += 1
        cookies = await sync_to_async(lambda: fast_fixtures.logged_in(self.user).cookies)()
        session = {settings.SESSION_COOKIE_NAME: cookies[settings.SESSION_COOKIE_NAME].value}
        async with httpx2.AsyncClient(cookies=session) as browser:
            question = await browser.get(address)
            assert question.status_code == 200, question.text
            found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', question.text)
            assert found is not None
            sent = {"csrfmiddlewaretoken": html.unescape(found[1]), "allow": "yes"}
            page = await browser.post(address, data=sent)
            assert page.status_code == 200, page.text
        self.back = came_back(Page(page.content))

    async def come_back(self) -> auth.AuthorizationCodeResult:
        return auth.AuthorizationCodeResult(**self.back)


class Page:
    """A page as Django's test client returns it."""

    def __init__(self, content: bytes) -> None:
        self.content = content


@contextlib.asynccontextmanager
async def connected(
    address: str, person: Person, storage: Storage, mode: str
) -> AsyncIterator[tuple[mcp.Client, auth.OAuthClientProvider]]:
    provider = auth.OAuthClientProvider(
        server_url=address,
        client_metadata=shared_auth.OAuthClientMetadata(client_name="Official", redirect_uris=[REDIRECT]),
        storage=storage,
        redirect_handler=person.open,
        callback_handler=person.come_back,
    )
    async with (
        httpx2.AsyncClient(auth=provider, timeout=SECONDS) as http,
        mcp.Client(streamable_http.streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client, provider


@pytest.fixture
def run(endpoint: Endpoint) -> Callable[..., None]:
    def do(act: Callable[[str], Any]) -> None:
        async def main() -> None:
            async with asyncio.timeout(SECONDS), endpoint.serving(), served(endpoint) as address:
                await act(address)

        async_to_sync(main)()

    return do


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_signs_in_knowing_only_the_address(
    olive: Any, run: Callable[..., None], mode: str
):
    person, storage = Person(olive), Storage()

    async def act(address: str) -> None:
        async with connected(f"{address}/mcp/ada", person, storage, mode) as (client, provider):
            assert "clock" in [tool.name for tool in (await client.list_tools()).tools]
            result = await client.call_tool("clock", {})
            # Its plugin is not installed here: the call came as far as the tool.
            assert result.meta is not None
            assert result.meta["toolbelt/refusal"]["code"] == "tool-unavailable"
            first = storage.access_token
            # Its access token has expired: it gets another one with its refresh token, and asks no one.
            provider.context.token_expiry_time = 1.0
            assert (await client.list_tools()).tools
            assert storage.access_token != first
        # Another start uses what it keeps.
        async with connected(f"{address}/mcp/ada", person, storage, mode) as (client, _):
            assert (await client.list_tools()).tools
            assert person.asked == 1
            # A revoked connection has to be allowed again.
            connection = await models.ClientConnection.objects.aget(revoked=None)
            await sync_to_async(client_connections.revoke)(writing.by("olive", "screen"), connection.pk)
            assert (await client.list_tools()).tools
            assert person.asked == 2

    run(act)
