"""Questions of upstream servers to the user of an MCP client, and the answers.

Up to 2025-11-25, a question is a request on the stream of the call. The answer is a separate message, which any process
of the server may receive. A process that does not wait for the answer stores it, and waiting processes poll for stored
answers. The id of a question is a secret that only its client knows, and is only valid with the token, agent and
session of the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from toolbelt.mcp import list_changes, protocol, request_head
from toolbelt.runtime import feed, threads
from toolbelt.runtime.calls import log_levels, open_questions

METHOD = "elicitation/create"
# How often answers that other processes received are read, in seconds.
POLL_SECONDS = 0.5
# The maximum length of an answer as JSON, in characters.
MAX_ANSWER = 200_000

_PREFIX = "elicitation-"
CANCEL: Mapping[str, Any] = {"action": "cancel"}

_log = structlog.get_logger(__name__)


def modes(capabilities: Any) -> frozenset[str]:
    """Return the modes in which a client with these capabilities can ask its user: form, url, both or none."""
    announced = capabilities.get("elicitation") if isinstance(capabilities, Mapping) else None
    if not isinstance(announced, Mapping):
        return frozenset()
    announced_modes = frozenset(
        mode for mode in list_changes.MODES if isinstance(announced.get(mode), Mapping)
    )
    # Before there were two modes, clients named none.
    return announced_modes or frozenset({"form"})


@dataclass(eq=False, slots=True)
class Waiting:
    """An open question of this process. ``is_elsewhere``: another process received the answer, and waits in turn."""

    answered: asyncio.Future[Mapping[str, Any]]
    is_elsewhere: bool = False

    def resolve(self, answer: Mapping[str, Any]) -> None:
        """Set the answer, unless there already is one."""
        if not self.answered.done():
            self.answered.set_result(answer)


class Questions:
    """The questions that this process waits for. For one event loop."""

    def __init__(self) -> None:
        self._open: dict[str, Waiting] = {}
        self._reader: asyncio.Task[None] | None = None
        self._trouble = ""

    @contextlib.asynccontextmanager
    async def opened(self, key: str, *, is_retried: bool = False) -> AsyncIterator[Waiting]:
        """Open a question for all processes, and close it at the end.

        ``is_retried``: the process that receives the answer waits for the outcome of the call, and then closes it.
        """
        waiting = Waiting(asyncio.get_running_loop().create_future())
        await threads.run(open_questions.add, key)
        self._open[key] = waiting
        if feed.is_ended():
            waiting.resolve(CANCEL)
        elif self._reader is None:
            self._reader = asyncio.create_task(self._read())
        try:
            yield waiting
        finally:
            del self._open[key]
            if not self._open and self._reader is not None:
                self._reader.cancel()
                self._reader = None
            if not (is_retried and waiting.is_elsewhere):
                await asyncio.shield(threads.run(open_questions.remove, key))

    def resolve(self, key: str, answer: Mapping[str, Any]) -> bool:
        """Answer a question if this process waits for it. Return whether it does."""
        if (waiting := self._open.get(key)) is None:
            return False
        waiting.resolve(answer)
        return True

    async def ask(
        self, head: request_head.RequestHead, question: Mapping[str, Any], send: Callable[[bytes], None]
    ) -> Mapping[str, Any]:
        """Send the question to the client, and return its answer. If cancelled, notify the client."""
        id_ = _PREFIX + new_id()
        async with self.opened(key_of(head, id_)) as waiting:
            send(protocol.request(id_, METHOD, question))
            try:
                return await waiting.answered
            except asyncio.CancelledError:
                send(protocol.notification(protocol.CANCELLED_BY_CLIENT, {"requestId": id_}))
                raise

    async def answer(self, head: request_head.RequestHead, response: Mapping[str, Any]) -> None:
        """Process the answer of a client, to a question of this process or of another."""
        id_ = response.get("id")
        if not isinstance(id_, str) or not id_.startswith(_PREFIX):
            return
        result = response.get("result")
        answer: Mapping[str, Any] = result if isinstance(result, dict) else CANCEL
        key = key_of(head, id_)
        if not self.resolve(key, answer):
            await answer_elsewhere(key, answer)

    async def _read(self) -> None:
        """Read the answers that other processes received, while a question is open."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            if feed.is_ended():
                # The server shuts down, and waits for its requests to end.
                for waiting in self._open.values():
                    waiting.resolve(CANCEL)
                return
            keys = [*self._open]
            try:
                answers = await threads.run(open_questions.answers, keys)
            except Exception as error:
                # They are read again in a moment, and the questions stay open. Logged once, because it may last.
                if str(error) != self._trouble:
                    self._trouble = str(error)
                    _log.exception("answers to questions not read")
                continue
            self._trouble = ""
            for key in keys:
                if (waiting_question := self._open.get(key)) is None or waiting_question.answered.done():
                    continue
                if key not in answers:
                    # Another process has closed it.
                    waiting_question.answered.cancel()
                elif text := answers[key]:
                    waiting_question.is_elsewhere = True
                    waiting_question.resolve(json.loads(text))


class StreamClient:
    """A client up to 2025-11-25, which receives questions on the stream of its call."""

    # The level for modern servers; the client's own level is looked up with the first message.
    log_level = log_levels.DEFAULT
    resumed: Mapping[str, Any] = {}
    takes_questions = False

    def __init__(
        self,
        questions: Questions,
        head: request_head.RequestHead,
        revision: str,
        modes: frozenset[str],
        send: Callable[[bytes], None],
        log: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.log = log
        self.revision, self.modes = revision, modes
        self.owner: Hashable = (head.token, head.agent, head.session, head.client_session or head.address)
        self._questions, self._head, self._send = questions, head, send
        self._asking: set[asyncio.Task[Mapping[str, Any]]] = set()
        self._is_gone = False

    async def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the user's answer, or a cancellation once the client has closed the stream."""
        if self._is_gone:
            return CANCEL
        asking = asyncio.create_task(self._questions.ask(self._head, question, self._send))
        self._asking.add(asking)
        try:
            await asyncio.wait({asking})
            return CANCEL if asking.cancelled() else asking.result()
        finally:
            self._asking.discard(asking)
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})

    def leave(self) -> None:
        """Stop waiting for answers, because the client has closed the stream."""
        self._is_gone = True
        for asking in self._asking:
            asking.cancel()


async def answer_elsewhere(key: str, answer: Mapping[str, Any]) -> bool:
    """Answer a question that another process waits for. Return False if there is none, or it was answered."""
    text = json.dumps(answer)
    return await threads.run(
        open_questions.answer, key, text if len(text) <= MAX_ANSWER else json.dumps(CANCEL)
    )


def new_id() -> str:
    """Return an unguessable id for a question."""
    return secrets.token_urlsafe(24)


def key_of(head: request_head.RequestHead, id_: str) -> str:
    """Return the key of a question, so that no client can answer another client's."""
    identity = (head.token, head.agent, head.session, head.client_session, id_)
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()
