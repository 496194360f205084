"""Fixtures of the tests of the ASGI application: a small configuration that is committed, and a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIHandler

from tests import fast_fixtures
from tests.api.conftest import BELT, SETUP, of_operator
from toolbelt import processes
from toolbelt.api import limits
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import running_tools
from toolbelt.front import application as front
from toolbelt.runtime import credentials
from toolbelt.runtime.records import record_writer
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.store import snapshots

ADDRESS = "/api/v1/agents/ada/surface"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as the ASGI server passes it on."""

    method: str = "GET"
    path: str = ADDRESS
    query: str = ""
    token: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    scheme: str = "http"

    def scope(self) -> dict[str, Any]:
        sent = {"host": "testserver", "user-agent": "tests"}
        if self.token:
            sent["authorization"] = f"Bearer {self.token}"
        if self.body is not None:
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
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value != "(none)"],
            "client": ("192.0.2.7", 50000),
            "server": ("testserver", 80),
        }

    def content(self) -> bytes:
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return json.dumps(self.body).encode()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response; ``by_django`` states whether Django produced it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    by_django: bool

    def header(self, name: str) -> str:
        return {given.decode().lower(): value.decode() for given, value in self.headers}[name]

    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """An application in front of Django, and Django behind it."""

    def __init__(self) -> None:
        self.answers = prepared_answers.answers()
        self.django_requests = 0
        self._django = ASGIHandler()
        self.application = front.Application(self._count, self.answers)

    def ask(self, *requests: Request) -> Answer:
        """Send requests one after the other, and return the last answer."""
        return self.ask_each(*requests)[-1]

    def ask_each(self, *requests: Request) -> list[Answer]:
        """Send requests one after the other in one event loop, and return all answers."""
        return async_to_sync(self._answers)(self.application, requests)

    def ask_django(self, request: Request) -> Answer:
        """Send a request to Django alone."""
        return async_to_sync(self._answers)(self._count, [request])[0]

    def warm(self, *requests: Request) -> None:
        """Send each request twice: the first builds the answer, the second prepares its bytes."""
        self.ask_each(*requests, *requests)

    async def _count(self, scope: Any, receive: Any, send: Any) -> None:
        self.django_requests += 1
        await self._django(scope, receive, send)

    async def _answers(self, application: Any, requests: Any) -> list[Answer]:
        try:
            return [await self._answer(application, request) for request in requests]
        finally:
            self.application.notes.write()
            if self.answers is not None:
                await self.answers.close()

    async def _answer(self, application: Any, request: Request) -> Answer:
        whole = request.content()
        parts = [whole[:5], whole[5:]]
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            # The client stays connected until it has the answer.
            return await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)

        before = self.django_requests
        await application(request.scope(), receive, send)
        return Answer(
            status=sent[0]["status"],
            headers=[(bytes(name), bytes(value)) for name, value in sent[0]["headers"]],
            body=b"".join(message.get("body", b"") for message in sent[1:]),
            by_django=self.django_requests > before,
        )


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset rate limits and cached snapshots, and start no background threads."""
    monkeypatch.setattr(credentials, "start", lambda: None)
    monkeypatch.setattr(record_writer, "start", lambda: None)
    monkeypatch.setattr(running_tools, "start", lambda: None)
    limits.rates.forget()
    snapshots.forget()
    yield
    # A server that was not shut down still records expirations in a thread.
    processes.stop_all()
    limits.rates.forget()


@pytest.fixture
def stored(transactional_db: None) -> None:
    fast_fixtures.stored("api", lambda: belts.import_(SETUP, BELT))


@pytest.fixture
def ada(stored: None) -> str:
    """Return a token of the agent ada."""
    return tokens.issue(SETUP, agent="ada").text


@pytest.fixture
def olga(stored: None) -> str:
    """Return a token of an operator that may only read."""
    return of_operator("olga", superuser=True, scope="read")


@pytest.fixture
def server(stored: None) -> Server:
    return Server()
