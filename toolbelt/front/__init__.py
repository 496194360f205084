"""Who answers first? Agents' questions that are ready in this process; Django answers everything else, and says how.

A request for a surface costs one look at the database and no thread. Everything that is not exactly such a request, is
not ready, or is to be refused goes on to Django unchanged, so that there is one place that decides what an answer is:
the bytes are those of the API's own document, and the headers are those that Django gave the last answer of the kind.
"""

from __future__ import annotations

import time
from typing import Any

from toolbelt import conf
from toolbelt.api import limits
from toolbelt.core import errors
from toolbelt.front import endpoint, envelopes, gate, ids, life, live, messages, notes, proxies, requests
from toolbelt.runtime import ready
from toolbelt.web import frame

_UNAVAILABLE = frame.UNAVAILABLE.lower().encode()


class Application:
    """The ASGI application in front of Django's."""

    def __init__(self, django: messages.Application, answers: ready.Answers | None) -> None:
        self._django = django
        self._answers = answers
        self._envelopes = envelopes.Envelopes()
        self.notes = notes.Notes()
        self._life = life.Life(answers, self.notes)
        self._per_minute = conf.API_PER_MINUTE
        self.mcp = endpoint.server(answers, self.notes)
        self._streams = live.Streams(django)
        self._gate = gate.Gate(self._answer, self.notes)

    async def __call__(self, scope: dict[str, Any], receive: messages.Receive, send: messages.Send) -> None:
        """Answer, or let Django answer."""
        if scope["type"] == "lifespan":
            await self._life.live(receive, send)
            return
        self._life.begin()
        if scope["type"] != "http":
            await self._django(scope, receive, send)
            return
        proxies.check_client(scope)
        if scope["method"] == "GET" and await self._answered_at_once(scope, send):
            return
        await self._gate(scope, receive, send)

    async def _answered_at_once(self, scope: dict[str, Any], send: messages.Send) -> bool:
        """Answer a plain question that is ready, and say whether it was: it has no body and waits for nothing, so
        there is nothing for the gate to limit.
        """
        request = requests.of(scope)
        if request is None or self._answers is None or notes.is_wanted_whole():
            return False
        begun = time.perf_counter()
        question = requests.question(request, None)
        answer = await self._answers.ask(question) if question is not None else None
        return answer is not None and await self._answered(request, answer, begun, send)

    async def _answer(self, scope: dict[str, Any], receive: messages.Receive, send: messages.Send) -> None:
        """Answer a request that the gate let through."""
        if endpoint.is_here(scope):
            await self.mcp(scope, receive, send)
            return
        if live.is_here(scope):
            await self._streams.answer(scope, receive, send)
            return
        request = requests.of(scope)
        if request is None or self._answers is None or notes.is_wanted_whole():
            await self._django(scope, receive, send)
            return
        begun = time.perf_counter()
        body = None
        if request.method == "POST":
            body, receive = await messages.read(receive)
        question = requests.question(request, body)
        answer = await self._answers.ask(question) if question is not None else None
        if answer is not None and await self._answered(request, answer, begun, send):
            return
        if question is None or not await self._answered_without_database(
            request, question, begun, scope, receive, send
        ):
            await self._django(scope, receive, self._learning(request, send))

    async def _answered_without_database(
        self,
        request: requests.Request,
        question: ready.Question,
        begun: float,
        scope: dict[str, Any],
        receive: messages.Receive,
        send: messages.Send,
    ) -> bool:
        """Send the last known answer where the database is away, or what Django answers where it is not.

        Say whether anything was sent: nothing where there is no last known answer.
        """
        answers = self._answers
        answer = await answers.last_known(question) if answers is not None else None
        if answers is None or answer is None:
            return False
        sent = await answers.standings.unless_away(lambda: self._asked(scope, receive))
        if sent is None:
            return await self._answered(request, answer, begun, send)
        send = self._learning(request, send)
        for message in sent:
            await send(message)
        return True

    async def _asked(self, scope: dict[str, Any], receive: messages.Receive) -> list[messages.Message]:
        """Return what Django sends. Raises errors.Unavailable where it cannot use the database."""
        sent: list[messages.Message] = []

        async def keep(message: messages.Message) -> None:
            sent.append(message)

        await self._django(scope, receive, keep)
        for name, value in sent[0]["headers"]:
            if name.lower() == _UNAVAILABLE:
                raise errors.Unavailable("database-unavailable", value.decode(), 1)
        return sent

    async def _answered(
        self, request: requests.Request, answer: ready.Answer, begun: float, send: messages.Send
    ) -> bool:
        """Send an answer, if it is known how one of its kind looks; say whether it was sent."""
        status = 304 if request.method == "GET" and request.etag == answer.etag else 200
        envelope = self._envelopes.get(_kind(request, status))
        if envelope is None or not self._may_ask_now(answer.bearer.prefix):
            return False
        body = answer.body() if status == 200 else b""
        request_id = ids.new()
        headers = envelope.addressed(etag=answer.etag, length=len(body), request_id=request_id)
        if answer.is_stale:
            headers = envelopes.marked_stale(headers, status)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        seconds = time.perf_counter() - begun
        self.notes.take(
            notes.Note(request, status, len(body), request_id, answer.bearer.name, time.time(), seconds)
        )
        return True

    def _may_ask_now(self, caller: str) -> bool:
        """Say whether there is one more request to take; if not, Django finds none either, and says when there is."""
        return not self._per_minute or not limits.rates.take(caller, self._per_minute)

    def _learning(self, request: requests.Request, send: messages.Send) -> messages.Send:
        """Look at the headers that Django answers with."""

        async def learning(message: messages.Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (200, 304):
                self._envelopes.learn(_kind(request, message["status"]), message["headers"])
            await send(message)

        return learning


def _kind(request: requests.Request, status: int) -> envelopes.Kind:
    return envelopes.Kind(request.scheme, request.host, request.method, status)
