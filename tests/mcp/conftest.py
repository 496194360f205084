"""Fixtures of the MCP endpoint's tests: the small configuration of the API's tests, and clients."""

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
from toolbelt.runtime import feed, prepared_answers

# How long to wait before a test fails instead of being slow, in seconds.
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
    """Write a request as a client of this revision does; without an id it is a notification."""
    said = dict(params or {})
    if version == NEW:
        said["_meta"] = {**ABOUT, **said.get("_meta", {})}
    found: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": said}
    return found if id_ is None else {**found, "id": id_}


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as a server hands it on. A header that is None is not sent."""

    body: Any = None
    method: str = "POST"
    path: str = ADDRESS
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
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value is not None],
            "client": self.client,
            "server": ("testserver", 80),
        }


class Exchange:
    """One request that is under way: what comes back of it, and the client's going away."""

    def __init__(self, application: Any, request: Request) -> None:
        self._coming: asyncio.Queue[Any] = asyncio.Queue()
        self._gone: asyncio.Event = asyncio.Event()
        self._content: list[bytes] = [request.content()]
        self._unread = b""
        self.task = asyncio.create_task(application(request.scope(), self._receive, self._send))
        self.task.add_done_callback(lambda _: self._coming.put_nowait(None))

    async def _receive(self) -> dict[str, Any]:
        if self._content:
            return {"type": "http.request", "body": self._content.pop(), "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self._coming.put_nowait(message)

    async def begun(self) -> tuple[int, dict[str, str]]:
        """Return the status and the headers."""
        message = await self._coming.get()
        if message is None:
            await self.task
            raise AssertionError("it was not answered")
        return message["status"], {
            name.decode().lower(): value.decode() for name, value in message["headers"]
        }

    async def rest(self) -> bytes:
        """Return all that comes until the end."""
        found = [self._unread]
        while (message := await self._coming.get()) is not None:
            found.append(message.get("body", b""))
        await self.task
        return b"".join(found)

    async def event(self) -> dict[str, str]:
        """Return the next event of a stream: its fields."""
        while b"\n\n" not in self._unread:
            message = await asyncio.wait_for(self._coming.get(), 20)
            if message is None:
                await self.task
                raise EOFError(f"the stream ended: {self._unread!r}")
            self._unread += message.get("body", b"")
        block, _, self._unread = self._unread.partition(b"\n\n")
        lines = [line.partition(":") for line in block.decode().split("\n")]
        return {name: value.removeprefix(" ") for name, _, value in lines}

    async def message(self) -> Any:
        """Return the next event that holds a message."""
        while True:
            found = await self.event()
            if found.get("data"):
                return json.loads(found["data"])

    def leave(self) -> None:
        """Let the client go away."""
        self._gone.set()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back of a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        assert self.status == 200, self.body
        found = self.json()
        assert "result" in found, found
        return found["result"]

    @property
    def error(self) -> Any:
        return self.json()["error"]

    @property
    def told(self) -> tuple[int, int]:
        """The HTTP status and the code of the error."""
        return self.status, self.error["code"]

    def messages(self) -> list[Any]:
        """Return the messages of a stream that ended."""
        assert self.headers["content-type"] == "text/event-stream", self
        lines = self.body.decode().split("\n")
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


_made: list[Endpoint] = []


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run it in an event loop, and let go of everything behind it."""

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
        """Send requests one after the other; give the answer to the last."""

        async def sent() -> Answer:
            async with self.serving():
                for request in requests[:-1]:
                    await self.asend(request)
                return await self.asend(requests[-1])

        return async_to_sync(sent)()

    def exchange(self, request: Request) -> Exchange:
        """Send a request, and see what comes."""
        return Exchange(self.application, request)

    async def asend(self, request: Request) -> Answer:
        exchange = self.exchange(request)
        status, headers = await exchange.begun()
        return Answer(status=status, headers=headers, body=await exchange.rest())

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Let go of everything behind."""
        try:
            yield
        finally:
            await feed.close()
            self.application.notes.write()
            if self.answers is not None:
                await self.answers.close()

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Exchange]:
        """Open a stream, and leave it."""
        exchange = Exchange(self.application, request)
        try:
            yield exchange
        finally:
            exchange.leave()
            await exchange.task


@dataclass(frozen=True, kw_only=True)
class Client:
    """A client of one revision, at one address."""

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
        """Ask for the stream of the first era."""
        sent: dict[str, str | None] = {"mcp-protocol-version": self.version, "accept": "text/event-stream"}
        if self.session:
            sent["mcp-session-id"] = self.session
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return Request(method="GET", path=self.path, token=self.token, headers=sent, client=self.client)

    def listening(self) -> Request:
        """Ask for a stream, as this revision does."""
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
    """Let no server record ends automatically, and no test see the servers of the one before it."""
    monkeypatch.setattr(expirations, "start", lambda: None)
    monkeypatch.setattr(running_tools, "start", lambda runnable: None)
    yield
    _made.clear()


@pytest.fixture(scope="session")
def kept_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture
def server_directory(kept_directory: Path) -> Path:
    """Return an empty directory for a server: always the same, so that the server's rows are, too."""
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
    """Return ada's client, of either era."""
    return Client(endpoint=endpoint, token=ada, version=request.param)


@pytest.fixture
def old(endpoint: Endpoint, ada: str) -> Client:
    return Client(endpoint=endpoint, token=ada)


@pytest.fixture
def new(endpoint: Endpoint, ada: str) -> Client:
    return Client(endpoint=endpoint, token=ada, version=NEW)
