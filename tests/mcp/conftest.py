"""Fixtures of the MCP endpoint's tests: the API tests' configuration, and clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIHandler

from tests import fast_fixtures
from tests.api.conftest import BELT, SETUP, of_operator
from tests.front.conftest import ada as ada
from tests.front.conftest import unhurried as unhurried
from tests.runtime.conftest import install as install
from tests.runtime.conftest import listed as listed
from toolbelt.control.access import expirations
from toolbelt.control.config import belts
from toolbelt.control.servers import running_tools
from toolbelt.front import application as front
from toolbelt.mcp import protocol
from toolbelt.runtime import feed
from toolbelt.runtime.surfaces import prepared_answers

# The time limit of a test, in seconds.
MAX_LENGTH = 100
OLD, OLDER, NEW = "2025-11-25", "2025-06-18", "2026-07-28"
ADDRESS = "/mcp/ada"
ABOUT = {
    protocol.VERSION: NEW,
    protocol.CAPABILITIES: {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}


def body_of(
    method: str, params: Mapping[str, Any] | None = None, version: str = OLD, id_: Any = 1
) -> dict[str, Any]:
    """Return a request as a client of this revision sends it, or a notification if ``id_`` is None."""
    sent = dict(params or {})
    if version == NEW:
        sent["_meta"] = {**ABOUT, **sent.get("_meta", {})}
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": sent}
    return message if id_ is None else {**message, "id": id_}


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as the ASGI server passes it on. A header that is None is not sent."""

    body: Any = None
    method: str = "POST"
    path: str = ADDRESS
    query: str = ""
    token: str = ""
    headers: Mapping[str, str | None] = field(default_factory=dict)
    scheme: str = "http"
    client: tuple[str, int] = ("192.0.2.7", 50000)

    def content(self) -> bytes:
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return json.dumps(self.body).encode()

    def scope(self) -> dict[str, Any]:
        sent: dict[str, str | None] = {
            "host": "testserver",
            "accept": "application/json, text/event-stream",
        }
        if self.token:
            sent["authorization"] = f"Bearer {self.token}"
        if self.method == "POST":
            sent |= {"content-type": "application/json", "content-length": str(len(self.content()))}
        sent |= {name.lower(): value for name, value in self.headers.items()}
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": self.scheme,
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": self.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value is not None],
            "client": self.client,
            "server": ("testserver", 80),
        }


class Exchange:
    """A request in progress: its response, and the client's disconnecting."""

    def __init__(self, application: Any, request: Request) -> None:
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._disconnected: asyncio.Event = asyncio.Event()
        self._content: list[bytes] = [request.content()]
        self._unread = b""
        self.task = asyncio.create_task(application(request.scope(), self._receive, self._send))
        self.task.add_done_callback(lambda _: self._messages.put_nowait(None))

    async def _receive(self) -> dict[str, Any]:
        if self._content:
            return {"type": "http.request", "body": self._content.pop(), "more_body": False}
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self._messages.put_nowait(message)

    async def started(self) -> tuple[int, dict[str, str]]:
        """Return the status and the headers of the response."""
        message = await self._messages.get()
        if message is None:
            await self.task
            raise AssertionError("it was not answered")
        return message["status"], {
            name.decode().lower(): value.decode() for name, value in message["headers"]
        }

    async def rest(self) -> bytes:
        """Return the rest of the body."""
        parts = [self._unread]
        while (message := await self._messages.get()) is not None:
            parts.append(message.get("body", b""))
        await self.task
        return b"".join(parts)

    async def event(self) -> dict[str, str]:
        """Return the fields of the next event of a stream."""
        while b"\n\n" not in self._unread:
            message = await asyncio.wait_for(self._messages.get(), 20)
            if message is None:
                await self.task
                raise EOFError(f"the stream ended: {self._unread!r}")
            self._unread += message.get("body", b"")
        block, _, self._unread = self._unread.partition(b"\n\n")
        lines = [line.partition(":") for line in block.decode().split("\n")]
        return {name: value.removeprefix(" ") for name, _, value in lines}

    async def message(self) -> Any:
        """Return the message of the next event that has one."""
        while True:
            fields = await self.event()
            if fields.get("data"):
                return json.loads(fields["data"])

    def disconnect(self) -> None:
        """Disconnect the client."""
        self._disconnected.set()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        assert self.status == 200, self.body
        message = self.json()
        assert "result" in message, message
        return message["result"]

    @property
    def error(self) -> Any:
        return self.json()["error"]

    @property
    def is_unknown(self) -> bool:
        """Whether the result says that the agent has no tool of this name."""
        result = self.result
        return result["isError"] is True and result["_meta"]["toolbelt/refusal"]["code"] == "unknown-tool"

    @property
    def status_and_code(self) -> tuple[int, int]:
        """The HTTP status and the code of the error."""
        return self.status, self.error["code"]

    def messages(self) -> list[Any]:
        """Return the messages of a finished stream."""
        assert self.headers["content-type"] == "text/event-stream", self
        lines = self.body.decode().split("\n")
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


_made: list[Endpoint] = []


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine on an event loop, and release all endpoints."""

    async def served() -> Any:
        try:
            async with asyncio.timeout(MAX_LENGTH):
                return await main()
        finally:
            await feed.close()
            for endpoint in _made:
                if endpoint.answers is not None:
                    await endpoint.answers.close()

    return async_to_sync(served)()


class Endpoint:
    """The application in front of Django, for clients of the endpoint."""

    def __init__(self, answers: prepared_answers.PreparedAnswers | None) -> None:
        self.answers = answers
        _made.append(self)
        self.application = front.Application(ASGIHandler(), answers)

    def send(self, *requests: Request) -> Answer:
        """Send requests one after the other, and return the last answer."""

        async def sent() -> Answer:
            async with self.serving():
                for request in requests[:-1]:
                    await self.asend(request)
                return await self.asend(requests[-1])

        return async_to_sync(sent)()

    def exchange(self, request: Request) -> Exchange:
        """Send a request, and return the exchange."""
        return Exchange(self.application, request)

    async def asend(self, request: Request) -> Answer:
        exchange = self.exchange(request)
        status, headers = await exchange.started()
        return Answer(status=status, headers=headers, body=await exchange.rest())

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Release the endpoint's resources at the end."""
        try:
            yield
        finally:
            await feed.close()
            self.application.notes.write()
            if self.answers is not None:
                await self.answers.close()

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Exchange]:
        """Open a stream, and disconnect at the end."""
        exchange = Exchange(self.application, request)
        try:
            yield exchange
        finally:
            exchange.disconnect()
            await exchange.task


@dataclass(frozen=True, kw_only=True)
class Client:
    """A client of one revision at one address."""

    endpoint: Endpoint
    token: str
    version: str = OLD
    path: str = ADDRESS
    session: str = ""
    client: tuple[str, int] = ("192.0.2.7", 50000)

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, id_: Any = 1, **headers: Any
    ) -> Request:
        sent: dict[str, str | None] = {"mcp-protocol-version": self.version}
        if self.version == NEW:
            sent["mcp-method"] = method
            if method in ("tools/call", "prompts/get") and isinstance((params or {}).get("name"), str):
                sent["mcp-name"] = (params or {})["name"]
            if method == "resources/read" and isinstance((params or {}).get("uri"), str):
                sent["mcp-name"] = (params or {})["uri"]
        if self.session:
            sent["mcp-session-id"] = self.session
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = body_of(method, params, self.version, id_)
        return Request(body=body, path=self.path, token=self.token, headers=sent, client=self.client)

    def stream(self, **headers: Any) -> Request:
        """Return a request for the stream of the first era."""
        sent: dict[str, str | None] = {"mcp-protocol-version": self.version, "accept": "text/event-stream"}
        if self.session:
            sent["mcp-session-id"] = self.session
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return Request(method="GET", path=self.path, token=self.token, headers=sent, client=self.client)

    def listening(self) -> Request:
        """Return a request for a stream as this revision makes it."""
        if self.version != NEW:
            return self.stream()
        return self.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "listen")

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **about: Any) -> Answer:
        return self.endpoint.send(self.request(method, params, **about))

    def names(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list").result["tools"]]

    def call(self, tool: str, arguments: Any = None, **about: Any) -> Answer:
        params: dict[str, Any] = {"name": tool}
        if arguments is not None:
            params["arguments"] = arguments
        return self.ask("tools/call", params, **about)


@pytest.fixture(autouse=True)
def on_their_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start no background threads, and forget the endpoints of earlier tests."""
    monkeypatch.setattr(expirations, "start", lambda: None)
    monkeypatch.setattr(running_tools, "start", lambda runnable: None)
    yield
    _made.clear()


@pytest.fixture(scope="session")
def kept_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture
def server_directory(kept_directory: Path) -> Path:
    """Return an empty directory for a server, always the same, so that the stored connection is, too."""
    shutil.rmtree(kept_directory)
    kept_directory.mkdir()
    return kept_directory


@pytest.fixture
def stored(transactional_db: None) -> None:
    fast_fixtures.stored("mcp", lambda: belts.import_(SETUP, BELT))


@pytest.fixture
def reader(stored: None) -> str:
    """Return a token of an operator that may only read."""
    return of_operator("rita", superuser=True, scope="read")


@pytest.fixture
def endpoint(stored: None) -> Endpoint:
    return Endpoint(prepared_answers.answers())


@pytest.fixture(params=[OLD, NEW])
def client(request: Any, endpoint: Endpoint, ada: str) -> Client:
    """Return a client of ada in each era."""
    return Client(endpoint=endpoint, token=ada, version=request.param)


@pytest.fixture
def old(endpoint: Endpoint, ada: str) -> Client:
    return Client(endpoint=endpoint, token=ada)


@pytest.fixture
def new(endpoint: Endpoint, ada: str) -> Client:
    return Client(endpoint=endpoint, token=ada, version=NEW)
